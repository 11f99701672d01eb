// Which time a page shows: the last so many minutes, which follows the present, or from one time to another. All times of
// charts are seconds since the epoch.

export interface Span {
  from: number;
  to: number;
}

export type Range = { kind: 'live'; seconds: number } | ({ kind: 'fixed' } & Span);

export interface Preset {
  key: string;
  seconds: number;
}

const MINUTE = 60;
const HOUR = 3_600;
const DAY = 86_400;

export const PRESETS: Preset[] = [
  { key: '5m', seconds: 5 * MINUTE },
  { key: '15m', seconds: 15 * MINUTE },
  { key: '1h', seconds: HOUR },
  { key: '6h', seconds: 6 * HOUR },
  { key: '24h', seconds: DAY },
  { key: '7d', seconds: 7 * DAY },
  { key: '30d', seconds: 30 * DAY },
  { key: '90d', seconds: 90 * DAY },
  { key: '1y', seconds: 365 * DAY },
];

export const USUAL: Range = { kind: 'live', seconds: 15 * MINUTE };

/** Nobody looks closer than this: samples are a second apart at the least. */
const SHORTEST = 10;
const LONGEST = 5 * 365 * DAY;

/** The range of an address: `?range=1h`, or `?from=…&to=…`. What makes no sense is left aside. */
export function rangeOf(query: URLSearchParams, usual: Range = USUAL): Range {
  const from = timeOf(query.get('from'));
  const to = timeOf(query.get('to'));
  if (from !== null && to !== null && to > from) return fixed({ from, to });
  const seconds = lengthOf(query.get('range'));
  return seconds === null ? usual : { kind: 'live', seconds };
}

/** What the address says of a range; for `router.set`. */
export function queryOf(range: Range, usual: Range = USUAL): Record<'range' | 'from' | 'to', string | null> {
  if (range.kind === 'fixed') return { range: null, from: textOf(range.from), to: textOf(range.to) };
  const isUsual = usual.kind === 'live' && usual.seconds === range.seconds;
  return { range: isUsual ? null : keyOf(range.seconds), from: null, to: null };
}

const SIZES: [letter: string, seconds: number][] = [
  ['y', 365 * DAY],
  ['w', 7 * DAY],
  ['d', DAY],
  ['h', HOUR],
  ['m', MINUTE],
  ['s', 1],
];

/** The seconds of `90m`, `24h`, `2d`, `3w`; null of what is none, or too short or long to be shown. */
function lengthOf(key: string | null): number | null {
  const [, count, letter] = /^(\d{1,9})([smhdwy])$/.exec(key ?? '') ?? [];
  const size = SIZES.find(([own]) => own === letter)?.[1];
  if (size === undefined) return null;
  const seconds = Number(count) * size;
  return seconds >= SHORTEST && seconds <= LONGEST ? seconds : null;
}

/** How a range up to now is written: `24h`, `2d`. */
export function keyOf(seconds: number): string {
  const preset = PRESETS.find((one) => one.seconds === seconds);
  const [letter, size] = SIZES.find(([, own]) => seconds % own === 0) ?? ['s', 1];
  return preset?.key ?? `${seconds / size}${letter}`;
}

/** The last so many seconds of a server that is younger: from its first sample, so that what there is fills the chart. */
export function stretched(span: Span, since: number | null): Span {
  if (since === null || since <= span.from) return span;
  return { from: since, to: Math.max(span.to, since + SHORTEST) };
}

/** The presets, and the range that is written so where it is none of them: somebody typed it. */
export function presetsWith(key: string): Preset[] {
  const seconds = PRESETS.some((one) => one.key === key) ? null : lengthOf(key);
  return seconds === null ? PRESETS : [...PRESETS, { key, seconds }];
}

/** From when to when a range is at a time. */
export function spanOf(range: Range, now: number): Span {
  return range.kind === 'fixed' ? { from: range.from, to: range.to } : { from: now - range.seconds, to: now };
}

export function isSame(one: Range, other: Range): boolean {
  if (one.kind === 'live') return other.kind === 'live' && one.seconds === other.seconds;
  return other.kind === 'fixed' && one.from === other.from && one.to === other.to;
}

/** A span that is `factor` times as long, with the time `about` at the same place. It does not go beyond the present. */
export function zoomed(span: Span, factor: number, about: number, now: number): Range {
  const length = clamp((span.to - span.from) * factor, SHORTEST, LONGEST);
  const share = (about - span.from) / (span.to - span.from);
  const from = about - share * length;
  return within({ from, to: from + length }, now);
}

/** A span that begins `by` seconds later. It does not go beyond the present. */
export function panned(span: Span, by: number, now: number): Range {
  return within({ from: span.from + by, to: span.to + by }, now);
}

/** What was chosen by dragging: at least so long that something can be seen. */
export function chosen(from: number, to: number, now: number): Range {
  const length = clamp(Math.abs(to - from), SHORTEST, LONGEST);
  const middle = (from + to) / 2;
  return within({ from: middle - length / 2, to: middle + length / 2 }, now);
}

/** The hour in which something ended at a time, with a little of what came after it. */
export function hourBefore(end: number, now: number): Range & { kind: 'fixed' } {
  return fixed({ from: end - 55 * MINUTE, to: Math.min(end + 5 * MINUTE, now) });
}

function within(span: Span, now: number): Range {
  const over = Math.max(0, span.to - now);
  return fixed({ from: span.from - over, to: span.to - over });
}

/** Addresses know whole seconds. */
function fixed(span: Span): Range & { kind: 'fixed' } {
  const from = Math.floor(span.from);
  // The length does not change by being moved.
  return { kind: 'fixed', from, to: from + Math.max(1, Math.round(span.to - span.from)) };
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}

/** The time that an address marks by `?at=…`. */
export function momentOf(query: URLSearchParams): number | null {
  const at = Date.parse(query.get('at') ?? '') / 1000;
  return Number.isFinite(at) ? at : null;
}

/** What an address says of a time, to the millisecond. */
export function textOf(seconds: number): string {
  return new Date(Math.round(seconds * 1000)).toISOString().replace('.000Z', 'Z');
}

/** The seconds of a time in an address: ISO 8601, or seconds since the epoch. */
function timeOf(text: string | null): number | null {
  if (!text) return null;
  const seconds = /^\d{9,11}$/.test(text) ? Number(text) : Date.parse(text) / 1000;
  return Number.isFinite(seconds) ? Math.floor(seconds) : null;
}
