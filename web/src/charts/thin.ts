// What is drawn of columns that have more points than there is room for: one for every other pixel at most. Each holds the mean,
// the least and the greatest of what it stands for, so that no peak is lost. Pure.
import { firstFrom } from './gaps';
import type { Span } from './ranges';
import type { Column, Value } from './series';

/** Pixels that a point has at least. */
export const PIXELS_EACH = 2;

const MINUTE = 60;
const HOUR = 3_600;
const DAY = 86_400;

/** How long the parts of a span are: each divides the next, or a day, so that parts begin at times that people know. */
const STEPS = [
  ...[1, 2, 5, 10, 15, 30],
  ...[1, 2, 5, 10, 15, 30].map((count) => count * MINUTE),
  ...[1, 2, 3, 4, 6, 8, 12].map((count) => count * HOUR),
  ...[1, 2, 4, 7, 14, 28, 56].map((count) => count * DAY),
];

/** The shortest of them of which at most `most` are in a span. */
export function stepOf(span: Span, most: number): number {
  const wanted = (span.to - span.from) / Math.max(1, most);
  return STEPS.find((step) => step >= wanted) ?? Math.ceil(wanted / DAY) * DAY;
}

interface Source {
  column: Column;
  /** Whether the least and the greatest are drawn. Of a line without them its peak is. */
  hasBand?: boolean;
  /** Its peak is drawn before the band, too. */
  isPeak?: boolean;
}

export interface Thinned {
  times: number[];
  columns: Column[];
  /** Seconds that a point stands for; null where the columns are as they were given. */
  step: number | null;
}

/** The columns as they are drawn in a span that has room for `most` points. */
export function thin(times: number[], lines: readonly Source[], span: Span, most: number): Thinned {
  const first = Math.max(0, firstFrom(times, span.from) - 1);
  const until = Math.min(times.length, firstFrom(times, span.to) + 1);
  if (until - first <= Math.max(2, most)) return { times, columns: lines.map((line) => line.column), step: null };
  const step = stepOf(span, most);
  const made: Thinned = { times: [], columns: lines.map(() => ({ avg: [], min: [], max: [] })), step };
  let part: number | null = null;
  let from = first;
  for (let place = first; place <= until; place += 1) {
    const at = place < until ? Math.floor((times[place] ?? 0) / step) : Infinity;
    if (part !== null && at !== part) {
      put(made, times, lines, from, place, part);
      // A part without anything breaks the lines.
      if (at !== Infinity && at > part + 1 && isEmpty(lines, place - 1)) empty(made, (part + 1) * step);
      from = place;
    }
    part = at;
  }
  return made;
}

/** Puts in the point that the places from one until another stand for. */
function put(made: Thinned, times: number[], lines: readonly Source[], from: number, until: number, part: number) {
  const step = made.step ?? 1;
  const last = times[until - 1] ?? 0;
  const before = made.times.at(-1) ?? -Infinity;
  // The newest part is not over yet: nothing is drawn where nothing was measured.
  made.times.push(Math.max(before, Math.min(last, (part + 0.5) * step)));
  for (const [index, { column, hasBand, isPeak }] of lines.entries()) {
    const target = made.columns[index];
    if (!target) continue;
    const { mean, least, most } = partOf(column, from, until);
    target.avg.push(hasBand && !isPeak ? mean : most);
    target.min.push(least);
    target.max.push(most);
  }
}

function partOf(column: Column, from: number, until: number): { mean: Value; least: Value; most: Value } {
  let sum = 0;
  let count = 0;
  let least: Value = null;
  let most: Value = null;
  for (let place = from; place < until; place += 1) {
    const mean = column.avg[place];
    if (mean == null) continue;
    sum += mean;
    count += 1;
    const low = column.min[place] ?? mean;
    const high = column.max[place] ?? mean;
    if (least === null || low < least) least = low;
    if (most === null || high > most) most = high;
  }
  return { mean: count === 0 ? null : sum / count, least, most };
}

function isEmpty(lines: readonly Source[], place: number): boolean {
  return lines.every(({ column }) => column.avg[place] == null);
}

function empty(made: Thinned, at: number): void {
  made.times.push(at);
  for (const column of made.columns) for (const values of [column.avg, column.min, column.max]) values.push(null);
}

/** A column of another table at `times`, as it was `earlier` seconds before each: what lies within `within` seconds. */
export function before(
  table: { times: readonly number[]; column: Column },
  times: readonly number[],
  earlier: number,
  within: number,
): Column {
  const made: Column = { avg: [], min: [], max: [] };
  let next = 0;
  for (const time of times) {
    const at = time - earlier;
    while (next + 1 < table.times.length && distance(table.times, next + 1, at) <= distance(table.times, next, at))
      next += 1;
    const isNear = distance(table.times, next, at) <= within;
    for (const part of ['avg', 'min', 'max'] as const)
      made[part].push(isNear ? (table.column[part][next] ?? null) : null);
  }
  return made;
}

function distance(times: readonly number[], place: number, at: number): number {
  const time = times[place];
  return time === undefined ? Infinity : Math.abs(time - at);
}
