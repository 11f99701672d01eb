import { duration, rate } from '../../lib/format';
import type { Reading } from '../../live/fleet.svelte';

/** The small print of a server, as it is written. */
export interface Print {
  in: string;
  out: string;
  load: string;
  uptime: string;
  /** Null or 0 where there are none. */
  containers: number | null;
}

const MINUTE = 60;

/** Seconds are of interest in the first minute alone. */
function calm(seconds: number): number {
  return seconds < MINUTE ? seconds : seconds - (seconds % MINUTE);
}

/** Three digits, whose width a column has. */
function short(load: number): string {
  return load.toFixed(load < 10 ? 2 : load < 100 ? 1 : 0);
}

/** All of it at once: one thing to follow instead of five. */
export function printOf(reading: Reading | null): Print {
  return {
    in: rate(reading?.network_in),
    out: rate(reading?.network_out),
    load: reading?.load_1 == null ? '–' : short(reading.load_1),
    uptime: reading?.uptime_seconds == null ? '–' : duration(calm(reading.uptime_seconds) * 1000),
    containers: reading?.containers ?? null,
  };
}
