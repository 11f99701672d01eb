/** Which stretch of `everyMs` a time lies in. Stretches begin at the same time for everybody. */
export function stretchOf(everyMs: number, now = performance.now()): number {
  return Math.floor(now / everyMs);
}

/**
 * Lets what is newest through once in each stretch of `everyMs`. All turns of the same length come together: a frame costs the page
 * two milliseconds, however little changes in it, so that one frame with all numbers costs less than a frame for each part of them.
 */
export class Turn<T> {
  readonly #everyMs: number;
  #stretch = -1;
  #held: T | null = null;

  constructor(everyMs: number) {
    this.#everyMs = everyMs;
  }

  /** What is shown at a time. `isLast`: nothing newer comes for long. */
  take(newest: T | null, isLast: boolean, now = performance.now()): T | null {
    const stretch = stretchOf(this.#everyMs, now);
    if (this.#held !== null && !isLast && stretch === this.#stretch) return this.#held;
    this.#stretch = stretch;
    return (this.#held = newest);
  }
}
