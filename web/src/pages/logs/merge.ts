// Lines of several logs in the order of their time. Each waits for a moment, so that one that comes a little later than a
// younger one of another log still stands before it. Pure: the clock is handed in.

/** What waits, with the time that orders it and the time at which it came. */
interface Waiting<T> {
  item: T;
  order: number;
  cameAt: number;
}

/** More than this is not held back. */
const MOST_WAITING = 20_000;

export class Merger<T> {
  /** The largest order that was given out. */
  last = -Infinity;
  #waiting: Waiting<T>[] = [];
  #isSorted = true;
  readonly #windowMs: number;

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** Adds one. Returns whether its place has been passed already. */
  add(item: T, order: number, now: number): boolean {
    const before = this.#waiting.at(-1);
    if (before && before.order > order) this.#isSorted = false;
    this.#waiting.push({ item, order, cameAt: now });
    return order < this.last;
  }

  /** Those that waited for long enough, and all that stand before them, in order. */
  take(now: number): T[] {
    if (!this.#isSorted) this.#waiting.sort((a, b) => a.order - b.order);
    this.#isSorted = true;
    const due = now - this.#windowMs;
    let count = this.#waiting.length;
    if (count <= MOST_WAITING) while (count > 0 && (this.#waiting[count - 1]?.cameAt ?? 0) > due) count -= 1;
    const taken = this.#waiting.splice(0, count);
    this.last = Math.max(this.last, taken.at(-1)?.order ?? -Infinity);
    return taken.map(({ item }) => item);
  }

  /** Everything, whether its time has come or not. */
  drain(): T[] {
    return this.take(Infinity);
  }

  /** Forgets what was given out: what comes from now on is ordered afresh. */
  restart(last = -Infinity): void {
    this.last = last;
  }
}
