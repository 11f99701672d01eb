interface Reading {
  at: number;
  value: number;
  /** How far it was from the one before it. */
  elapsed: number;
}

/** Samples further apart than this many times their usual distance have a gap between them. As the service has it. */
const GAP_FACTOR = 3;

/** Makes rates of counters, as the service does for the history: none over a gap, and none where a counter was reset. */
export class Rates {
  #before = new Map<string, Reading>();

  /** What came in a second, between the reading before and this one at `at` (seconds); null when there is no telling. */
  of(name: string, value: number, at: number, usual: number): number | null {
    const before = this.#before.get(name);
    if (before && at <= before.at) return null;
    const elapsed = before ? at - before.at : 0;
    this.#before.set(name, { at, value, elapsed });
    if (!before || value < before.value) return null;
    // An agent that begins to send less often has a new distance from the second time on.
    const gap = Math.max(usual * GAP_FACTOR, before.elapsed * 1.5);
    return elapsed > gap ? null : (value - before.value) / elapsed;
  }

  /** Forgets counters that were not read since: interfaces and containers come and go. */
  forgetBefore(at: number): void {
    for (const [name, reading] of this.#before) if (reading.at < at) this.#before.delete(name);
  }
}
