/**
 * Lets what is newest through once in each stretch of `everyMs`. Stretches begin at a phase of their own, so that of many that
 * get a value at once a few change.
 */
export class Turn<T> {
  readonly #everyMs: number;
  readonly #phaseMs: number;
  #stretch = -1;
  #held: T | null = null;

  constructor(everyMs: number, phaseMs = Math.random() * everyMs) {
    this.#everyMs = everyMs;
    this.#phaseMs = phaseMs;
  }

  /** What is shown at a time. `isLast`: nothing newer comes for long. */
  take(newest: T | null, isLast: boolean, now = performance.now()): T | null {
    const stretch = Math.floor((now + this.#phaseMs) / this.#everyMs);
    if (this.#held !== null && !isLast && stretch === this.#stretch) return this.#held;
    this.#stretch = stretch;
    return (this.#held = newest);
  }
}
