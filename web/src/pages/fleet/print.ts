import type { AgentInfo } from '../../api/types';
import { duration, fixed, rate } from '../../lib/format';
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

/** Seconds of a day, an hour and a minute. */
const UNITS = [86_400, 3_600, 60];

/** The largest part alone, for which a narrow card has room. */
function calm(seconds: number): number {
  const unit = UNITS.find((size) => seconds >= size) ?? 1;
  return seconds - (seconds % unit);
}

/** Three digits, whose width a column has. */
function short(load: number): string {
  return fixed(load, load < 10 ? 2 : load < 100 ? 1 : 0);
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

/** Who signs what runs on a server, as its agent says; a dash where nothing needs a signature. */
export function signersOf(agent: Pick<AgentInfo, 'signing'> | null | undefined, somebody: () => string): string {
  if (!agent?.signing) return '–';
  const { signers, more_signers: more } = agent.signing;
  // An older agent names nobody.
  if (signers.length === 0) return somebody();
  const names = [...new Set(signers.map(({ name }) => name))].join(', ');
  return more > 0 ? `${names} +${more}` : names;
}
