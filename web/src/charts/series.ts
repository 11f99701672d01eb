// The history of a server as columns that charts draw as they are, and how live samples are added to it. Columns are
// changed in place: a chart holds them and draws again when its `revision` changes.
import type { SeriesTable, Snapshot } from '../api/types';
import { breaks, firstFrom, isGap, LEAST_PACE, paceOf } from './gaps';
import { measuredIn } from './metrics';
import type { Rates } from './rates';

export type Value = number | null;

export interface Column {
  avg: Value[];
  min: Value[];
  max: Value[];
}

export interface Table {
  /** Seconds between points. */
  resolution: number;
  /** Seconds since the epoch, ascending. */
  times: number[];
  columns: Map<string, Column>;
}

export function emptyTable(resolution = 1): Table {
  return { resolution, times: [], columns: new Map() };
}

/** The service's answer as a table: one point a time, and an empty point where a line must break. */
export function tableOf(given: SeriesTable): Table {
  const resolution = Math.max(1, given.resolution_seconds);
  // Two samples within a second have the same time: the later one stands for both.
  const kept = given.timestamps.map((_, place) => place).filter((place) => isLast(given.timestamps, place));
  const times = kept.map((place) => given.timestamps[place] ?? 0);
  const points = breaks(times, paceOf(times, Math.max(resolution, LEAST_PACE)));
  const columns = new Map<string, Column>();
  for (const [name, column] of Object.entries(given.series)) {
    const pick = (values: readonly (number | null | undefined)[]) =>
      broken(
        kept.map((place) => values[place] ?? null),
        points,
        () => null,
      );
    columns.set(name, { avg: pick(column.avg), min: pick(column.min), max: pick(column.max) });
  }
  return { resolution, times: broken(times, points, (point) => point.at), columns };
}

function isLast(times: readonly number[], place: number): boolean {
  return times[place] !== times[place + 1];
}

interface Break {
  place: number;
  at: number;
}

function broken<T>(values: T[], points: Break[], empty: (point: Break) => T): T[] {
  if (points.length === 0) return values;
  const out: T[] = [];
  let next = 0;
  for (const [place, value] of values.entries()) {
    const point = points[next];
    if (point?.place === place) {
      out.push(empty(point));
      next += 1;
    }
    out.push(value);
  }
  return out;
}

const NONE: ReadonlySet<string> = new Set();

/** What a sample says, under the names that the history has. `counters` are the open series that count up. */
export function readingsOf(
  sample: Snapshot,
  rates: Rates,
  interval: number,
  counters: ReadonlySet<string> = NONE,
): Map<string, Value> {
  const at = Date.parse(sample.timestamp) / 1000;
  const found = new Map<string, Value>();
  const rate = (name: string, value: number) => found.set(name, rates.of(name, value, at, interval));
  for (const { name, value, isCounter } of measuredIn(sample)) {
    if (isCounter) rate(name, value);
    else found.set(name, value);
  }
  for (const [name, value] of Object.entries(sample.extra ?? {})) {
    if (counters.has(name)) rate(name, value);
    else found.set(name, value);
  }
  return found;
}

/** Puts live samples behind a table. */
export class Appender {
  readonly table: Table;
  /** How many samples the last point is the mean of. */
  #count = 0;
  #interval: number;

  constructor(table: Table, interval: number) {
    this.table = table;
    this.#interval = interval;
    const last = table.times.at(-1);
    // The service does not say how many samples a bucket has that was read while it filled, nor where that bucket ends.
    if (last !== undefined) this.#count = Math.max(1, Math.round(table.resolution / interval / 2));
  }

  /** Whether points stand for many samples each. */
  get isCoarse(): boolean {
    return this.table.resolution > this.#interval * 1.5;
  }

  /** Adds what a sample says. False when the time lies before the last point: the history must be read again. */
  add(at: number, readings: Map<string, Value>, wants: (name: string) => boolean): boolean {
    const { table } = this;
    const width = this.isCoarse ? table.resolution : 1;
    const time = Math.floor(at / width) * width;
    const last = table.times.at(-1);
    if (last !== undefined && time < last) return false;
    const isNew = last === undefined || time > last;
    if (isNew) {
      const usual = Math.max(this.isCoarse ? table.resolution : this.#interval, LEAST_PACE);
      if (last !== undefined && isGap(last, time, usual)) this.#row(last + usual);
      this.#row(time);
    }
    this.#count = isNew || !this.isCoarse ? 1 : this.#count + 1;
    const place = table.times.length - 1;
    for (const [name, value] of readings) {
      if (value === null || !wants(name)) continue;
      put(this.#column(name), place, value, this.#count);
    }
    return true;
  }

  #row(time: number): void {
    this.table.times.push(time);
    for (const column of this.table.columns.values()) {
      column.avg.push(null);
      column.min.push(null);
      column.max.push(null);
    }
  }

  #column(name: string): Column {
    const known = this.table.columns.get(name);
    if (known) return known;
    const empty = (): Value[] => new Array<Value>(this.table.times.length).fill(null);
    const made = { avg: empty(), min: empty(), max: empty() };
    this.table.columns.set(name, made);
    return made;
  }
}

function put(column: Column, place: number, value: number, count: number): void {
  const mean = column.avg[place];
  if (count <= 1 || mean == null) {
    column.avg[place] = column.min[place] = column.max[place] = value;
    return;
  }
  column.avg[place] = mean + (value - mean) / count;
  column.min[place] = Math.min(column.min[place] ?? value, value);
  column.max[place] = Math.max(column.max[place] ?? value, value);
}

/** Takes away what lies before a time, once that is worth it: a table that follows the present does not grow. */
export function trim(table: Table, from: number): void {
  // One point before is kept, so that lines begin at the edge.
  const gone = firstFrom(table.times, from) - 1;
  if (gone < 64) return;
  table.times.splice(0, gone);
  for (const column of table.columns.values()) {
    column.avg.splice(0, gone);
    column.min.splice(0, gone);
    column.max.splice(0, gone);
  }
}

/** How many points may have come since without a value, for the last one still to be the newest. */
const MISSED = 3;

/** The newest value of a column; null when none has come of late: what it is of is gone. */
export function newest(column: Column): Value {
  for (let back = 1; back <= MISSED; back += 1) {
    const value = column.avg[column.avg.length - back];
    if (value != null) return value;
  }
  return null;
}

export interface Summary {
  now: Value;
  min: Value;
  max: Value;
}

/** The last value, the least and the greatest of a column within places. */
export function summaryOf(column: Column, from: number, until: number): Summary {
  const found: Summary = { now: null, min: null, max: null };
  for (let place = from; place < until; place += 1) {
    const mean = column.avg[place];
    if (mean == null) continue;
    found.now = mean;
    const least = column.min[place] ?? mean;
    const most = column.max[place] ?? mean;
    if (found.min === null || least < found.min) found.min = least;
    if (found.max === null || most > found.max) found.max = most;
  }
  return found;
}
