// What all servers are and do together. Pure.
import type { Server, ServerStatus } from '../../api/types';
import type { Reading } from '../../live/fleet.svelte';

/** What totals read of a row. */
export interface Counted {
  readonly id: string;
  readonly server: Server;
  readonly status: ServerStatus;
  readonly reading: Reading | null;
}

export interface Totals {
  servers: number;
  online: number;
  /** Of the servers that are online. */
  cores: number;
  /** Of all cores. */
  cpuPercent: number | null;
  memoryPercent: number | null;
  /** Bytes; null where the size of no memory is known. */
  memoryUsed: number | null;
  memoryTotal: number | null;
  in: number;
  out: number;
}

/**
 * `memory` has the bytes of each server's memory, where they are known; null while they are being read: the mean of percentages
 * would be another number than their share of all bytes a moment later.
 */
export function totalsOf(rows: readonly Counted[], memory: ReadonlyMap<string, number> | null): Totals {
  const totals: Totals = {
    servers: rows.length,
    online: 0,
    cores: 0,
    cpuPercent: null,
    memoryPercent: null,
    memoryUsed: null,
    memoryTotal: null,
    in: 0,
    out: 0,
  };
  let [busy, cores, shares, known, used, total] = [0, 0, 0, 0, 0, 0];
  for (const { id, server, status, reading } of rows) {
    if (status !== 'online') continue;
    totals.online += 1;
    const own = server.agent?.cpu_count ?? 0;
    totals.cores += own;
    if (!reading) continue;
    totals.in += reading.network_in ?? 0;
    totals.out += reading.network_out ?? 0;
    if (reading.cpu_percent !== null) {
      // One whose cores are not known counts as one.
      busy += reading.cpu_percent * Math.max(1, own);
      cores += Math.max(1, own);
    }
    if (reading.memory_percent !== null) {
      shares += reading.memory_percent;
      known += 1;
      const size = memory?.get(id);
      if (size !== undefined) {
        used += (size * reading.memory_percent) / 100;
        total += size;
      }
    }
  }
  if (cores > 0) totals.cpuPercent = busy / cores;
  if (total > 0) [totals.memoryUsed, totals.memoryTotal, totals.memoryPercent] = [used, total, (used / total) * 100];
  else if (memory && known > 0) totals.memoryPercent = shares / known;
  return totals;
}

export type Pressed = 'cpu' | 'memory' | 'disk';

export interface Busy<T> {
  row: T;
  /** What presses most, and how much of 100. */
  by: Pressed;
  percent: number;
}

/** The servers that have least of something left, the worst first. */
export function worstOf<T extends Counted>(rows: readonly T[], count: number): Busy<T>[] {
  const found: Busy<T>[] = [];
  for (const row of rows) {
    if (row.status !== 'online' || !row.reading) continue;
    const { cpu_percent, memory_percent, disk_percent } = row.reading;
    const shares: [Pressed, number][] = [
      ['cpu', cpu_percent ?? -1],
      ['memory', memory_percent ?? -1],
      ['disk', disk_percent ?? -1],
    ];
    const [by, percent] = shares.reduce((most, share) => (share[1] > most[1] ? share : most));
    if (percent < 0) continue;
    const last = found.at(-1);
    if (found.length === count && last && last.percent >= percent) continue;
    const place = found.findIndex((other) => other.percent < percent);
    found.splice(place < 0 ? found.length : place, 0, { row, by, percent });
    if (found.length > count) found.pop();
  }
  return found;
}

/** How many points a stacked course has, and how far they are apart. */
export const POINTS = 120;
export const POINT_MS = 5_000;
/** A course of fewer points would be a block that grows: it is not shown. */
const LEAST_POINTS = 12;

/** Two numbers over the last ten minutes: what came in, and what went out on top of it. */
export class Stack {
  #points: { at: number; in: number; out: number }[] = [];

  /** Returns whether a new point begins with it: the course then moves. */
  add(at: number, incoming: number, outgoing: number): boolean {
    const slot = Math.floor(at / POINT_MS);
    const last = this.#points.at(-1);
    const isNew = !last || last.at < slot;
    if (isNew) this.#points.push({ at: slot, in: incoming, out: outgoing });
    else Object.assign(last, { in: incoming, out: outgoing });
    while ((this.#points[0]?.at ?? slot) <= slot - POINTS) this.#points.shift();
    return isNew;
  }

  get length(): number {
    return this.#points.length;
  }

  clear(): void {
    this.#points = [];
  }

  /**
   * Areas on an image of POINTS - 1 by 100, and what stands at its top. A stretch in which nothing came is left out. Null until
   * a minute is known.
   */
  paths(now: number): { in: string; out: string; most: number } | null {
    const most = Math.max(1, ...this.#points.map((point) => point.in + point.out));
    const present = Math.floor(now / POINT_MS);
    const known = present - (this.#points[0]?.at ?? present);
    if (known < LEAST_POINTS) return null;
    const stretches: { at: number; in: number; out: number }[][] = [];
    let before = -Infinity;
    for (const point of this.#points) {
      if (point.at - before > 3) stretches.push([]);
      stretches.at(-1)?.push(point);
      before = point.at;
    }
    // What is known fills the width.
    const width = Math.min(POINTS - 1, known);
    const x = (at: number) => Number((POINTS - 1 - ((present - at) * (POINTS - 1)) / width).toFixed(1));
    const y = (value: number) => Number((100 - (value / most) * 96).toFixed(1));
    const area = (upper: (point: { in: number; out: number }) => number, lower: typeof upper) =>
      stretches
        .map((stretch) => {
          const there = stretch.map((point) => `${x(point.at)} ${y(upper(point))}`);
          const back = stretch.map((point) => `${x(point.at)} ${y(lower(point))}`).reverse();
          return `M${[...there, ...back].join('L')}Z`;
        })
        .join('');
    return {
      in: area(
        (point) => point.in,
        () => 0,
      ),
      out: area(
        (point) => point.in + point.out,
        (point) => point.in,
      ),
      most,
    };
  }
}
