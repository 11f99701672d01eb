// When a reading is too old to be believed.

/** A reading is never too old before this: one sample that comes late is nobody's concern. */
const LEAST_MS = 30_000;
/** So many samples in a row did not come. */
const MISSED = 3;
/** The longest interval that an agent knows. */
const LONGEST_MS = 3_600_000;
/** How many of the last intervals are remembered. */
const REMEMBERED = 3;

/**
 * How often a server is measured, learnt from the times of its samples. The shortest of the last few counts: a longer
 * one is a sample that was skipped, or the time in which the agent was away.
 */
export class Pace {
  #gaps: number[] = [];
  #last: number | null = null;
  /** Null until two samples were seen. */
  intervalMs: number | null = null;

  /** Takes the time of a sample, in milliseconds. */
  add(at: number): void {
    const gap = this.#last === null ? 0 : at - this.#last;
    this.#last = at;
    if (gap <= 0) return;
    this.#gaps.push(Math.min(gap, LONGEST_MS));
    if (this.#gaps.length > REMEMBERED) this.#gaps.shift();
    this.intervalMs = Math.min(...this.#gaps);
  }

  /** From which age on a reading is old. */
  get limitMs(): number {
    return Math.max(LEAST_MS, MISSED * (this.intervalMs ?? 0));
  }
}
