// The recent course of one number, in bins of a minute: what a sparkline draws. Its size never changes.

export const BIN_SECONDS = 60;
/** An hour, and the minute that has just begun. */
export const BINS = 61;

/** The columns of a series, as `GET /metrics/fleet` gives them. */
export interface Columns {
  resolution_seconds: number;
  timestamps: number[];
  avg: (number | null)[];
}

/** A stretch without a gap: places from 0 (the oldest bin) to BINS - 1 (the present one), and values. */
export type Stretch = [place: number, value: number][];

export class Course {
  // A ring: a bin lies at its number modulo BINS, and `#numbers` tells whether it is still that one.
  #numbers = new Float64Array(BINS).fill(-1);
  #sums = new Float64Array(BINS);
  #counts = new Float64Array(BINS);
  #last: { bin: number; value: number } | null = null;
  #listeners = new Set<() => void>();
  /** How far apart samples are: bins that none can fall into are no gap. */
  intervalSeconds = 5;

  /** Takes one value. `at` in seconds. */
  add(at: number, value: number): void {
    const bin = Math.floor(at / BIN_SECONDS);
    this.#put(bin, value, 1);
    const isNew = !this.#last || bin > this.#last.bin;
    if (!this.#last || bin >= this.#last.bin) this.#last = { bin, value };
    if (isNew) this.#changed();
  }

  /** Takes what the history knows, in place of what was there. */
  fill(columns: Columns): void {
    this.#numbers.fill(-1);
    this.#last = null;
    const width = Math.max(1, Math.ceil(columns.resolution_seconds / BIN_SECONDS));
    for (const [index, at] of columns.timestamps.entries()) {
      const value = columns.avg[index];
      if (value === null || value === undefined) continue;
      const first = Math.floor(at / BIN_SECONDS);
      for (let bin = first; bin < first + width; bin += 1) this.#put(bin, value, 1);
    }
    this.#changed();
  }

  /** What there is at a time in seconds, oldest first. The end of the line is the newest value, not a mean. */
  stretches(now: number): Stretch[] {
    const present = Math.floor(now / BIN_SECONDS);
    const allowed = Math.max(1, Math.ceil((2 * this.intervalSeconds) / BIN_SECONDS));
    const found: Stretch[] = [];
    let before = -Infinity;
    for (let place = 0; place < BINS; place += 1) {
      const bin = present - BINS + 1 + place;
      const at = bin % BINS;
      if (bin < 0 || this.#numbers[at] !== bin) continue;
      const mean = (this.#sums[at] ?? 0) / (this.#counts[at] ?? 1);
      const value = this.#last?.bin === bin ? this.#last.value : mean;
      if (place - before > allowed) found.push([]);
      found.at(-1)?.push([place, value]);
      before = place;
    }
    return found;
  }

  /** Calls when there is something new to draw: when a minute begins, not for each value in it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #put(bin: number, value: number, count: number): void {
    const at = bin % BINS;
    const known = this.#numbers[at] ?? -1;
    if (bin < known) return;
    if (bin > known) {
      this.#numbers[at] = bin;
      this.#sums[at] = this.#counts[at] = 0;
    }
    this.#sums[at] = (this.#sums[at] ?? 0) + value * count;
    this.#counts[at] = (this.#counts[at] ?? 0) + count;
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}
