// The levels of the lines that a page holds, and how many there are of each. Lines are read a little at a time, so that a
// hundred thousand that come at once are not felt; a line in sight is read at once, by who draws it.
import { LEVELS, levelOf, type Level } from './levels';
import type { Lines } from './lines';

/** The page has its turn after so long. */
const SLICE_MS = 5;
const REST_MS = 8;
/** How many lines are read between two looks at the clock. */
const STEP_LINES = 64;

/** What stands for a line that says no level. */
const NONE = LEVELS.length;
/** Marks a line that continues another one, which counts for both. */
const CONTINUES = 16;

export type Counts = Record<Level, number>;

/** How many lines of each level there are in a part of the time; the last number is of those without one. */
export interface Histogram {
  from: number;
  /** Milliseconds of one bar. */
  step: number;
  bars: Uint32Array[];
}

export interface Reader {
  /** The number of the line whose level counts for this one. */
  headOf(number: number): number;
  /** Lines were read, up to but without `to`. */
  read(from: number, to: number): void;
}

export class LineLevels {
  /** As of the last frame. */
  counts = $state.raw<Counts>(noCounts());

  readonly #lines: Lines;
  readonly #reader: Reader;
  readonly #levels: Uint8Array;
  readonly #times: Float64Array;
  readonly #counts = new Array<number>(NONE + 1).fill(0);
  #first = 0;
  #next = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(lines: Lines, reader: Reader) {
    this.#lines = lines;
    this.#reader = reader;
    this.#levels = new Uint8Array(lines.capacity);
    this.#times = new Float64Array(lines.capacity);
  }

  /** Lines before this number were read. */
  get next(): number {
    return this.#next;
  }

  /** The level of a line that is held, whether it was read before or not. */
  of(number: number): Level | null {
    const head = this.#reader.headOf(number);
    const from = head >= this.#lines.first ? head : number;
    if (from < this.#next) return LEVELS[(this.#levels[from % this.#lines.capacity] ?? NONE) % CONTINUES] ?? null;
    const line = this.#lines.get(from);
    return line?.kind === 'line' ? levelOf(line.plain) : null;
  }

  /** Lines came: they are read soon. */
  grown(): void {
    if (this.#next < this.#lines.end) this.#timer ??= setTimeout(() => this.#slice(), 0);
  }

  /** The log dropped lines. */
  trimmed(): void {
    const { first } = this.#lines;
    for (let number = this.#first; number < Math.min(first, this.#next); number += 1) {
      const level = this.#levels[number % this.#lines.capacity] ?? NONE;
      if (level < CONTINUES) this.#counts[level] = (this.#counts[level] ?? 0) - 1;
    }
    this.#first = first;
    this.#next = Math.max(this.#next, first);
  }

  /** Publishes the numbers: once a frame. */
  tell(): void {
    const counts = noCounts();
    let isNew = false;
    for (const [index, level] of LEVELS.entries()) {
      counts[level] = this.#counts[index] ?? 0;
      isNew ||= counts[level] !== this.counts[level];
    }
    if (isNew) this.counts = counts;
  }

  /** Lines over their time, in so many bars at most; null where fewer than two have a time. */
  histogram(most: number): Histogram | null {
    let [from, to] = [Infinity, -Infinity];
    const { capacity } = this.#lines;
    for (let number = this.#first; number < this.#next; number += 1) {
      const at = this.#times[number % capacity] ?? Number.NaN;
      if (at < from) from = at;
      if (at > to) to = at;
    }
    if (!(to > from)) return null;
    const step = stepOf((to - from) / most);
    const begin = Math.floor(from / step) * step;
    const count = Math.floor((to - begin) / step) + 1;
    const bars = Array.from({ length: NONE + 1 }, () => new Uint32Array(count));
    for (let number = this.#first; number < this.#next; number += 1) {
      const slot = number % capacity;
      const at = this.#times[slot] ?? Number.NaN;
      const bar = bars[this.#levels[slot] ?? NONE];
      const index = Math.floor((at - begin) / step);
      if (bar && index >= 0 && index < count) bar[index] = (bar[index] ?? 0) + 1;
    }
    return { from: begin, step, bars };
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #slice(): void {
    this.#timer = undefined;
    const until = performance.now() + SLICE_MS;
    const from = this.#next;
    while (this.#next < this.#lines.end && performance.now() < until) {
      const to = Math.min(this.#lines.end, this.#next + STEP_LINES);
      while (this.#next < to) this.#read(this.#next);
    }
    this.#reader.read(from, this.#next);
    if (this.#next < this.#lines.end) this.#timer ??= setTimeout(() => this.#slice(), REST_MS);
  }

  #read(number: number): void {
    const line = this.#lines.get(number);
    const found = this.of(number);
    const level = found === null ? NONE : LEVELS.indexOf(found);
    const slot = number % this.#lines.capacity;
    const isOwn = this.#reader.headOf(number) === number;
    this.#levels[slot] = isOwn ? level : level + CONTINUES;
    // What the page itself notes is no line of the log.
    this.#times[slot] = line?.kind === 'line' && line.at !== null ? line.at : Number.NaN;
    if (isOwn) this.#counts[level] = (this.#counts[level] ?? 0) + 1;
    this.#next = number + 1;
  }
}

function noCounts(): Counts {
  return Object.fromEntries(LEVELS.map((level) => [level, 0])) as Counts;
}

const STEPS_MS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000,
  900_000, 1_800_000, 3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000,
];
const DAY_MS = 86_400_000;

/** A length of bars that people count in, not less than this. */
export function stepOf(least: number): number {
  return STEPS_MS.find((step) => step >= least) ?? Math.ceil(least / DAY_MS) * DAY_MS;
}
