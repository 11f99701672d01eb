import { untrack } from 'svelte';
import { alerts } from './alerts.svelte';
import { clock } from './clock.svelte';
import { fleet, type Reading, type Row } from './fleet.svelte';
import { Turn } from './turns';

/** Numbers that change faster are not read where many stand side by side. Most agents measure less often anyway. */
const READ_MS = 2_000;
/** The same for small print. */
const PRINT_MS = 4_000;

/** What is shown of a row. Out of sight it stands still, so hundreds of servers cost what a windowful costs. */
export class Shown {
  isSeen = $state(false);
  readonly row: Row;
  #held: Reading | null;
  readonly #turn = new Turn<Reading>(READ_MS);
  readonly #printTurn = new Turn<Reading>(PRINT_MS);
  #age: number | null = null;
  #isStale = false;

  constructor(row: Row) {
    this.row = row;
    this.#held = row.reading;
  }

  // Does not read whether it is stale, which changes with the clock: all that is shown would be computed again each second.
  get #isLast(): boolean {
    return this.row.status !== 'online';
  }

  readonly reading: Reading | null = $derived.by(() => {
    if (this.isSeen) this.#held = this.#turn.take(this.row.reading, this.#isLast);
    return this.#held;
  });

  /** The reading for what stands in small print: it may be a moment older. */
  readonly print: Reading | null = $derived.by(() => this.#printTurn.take(this.reading, this.#isLast));

  // The clock moves these two: that a reading makes them young is seen within a second.
  readonly age: number | null = $derived.by(() => {
    const { now } = clock;
    if (this.isSeen) this.#age = untrack(() => this.row.age(now));
    return this.#age;
  });

  readonly isStale: boolean = $derived.by(() => {
    if (this.isSeen) {
      const { now } = clock;
      const { isCut } = fleet;
      void this.row.status;
      this.#isStale = untrack(() => this.row.isStale(now, isCut));
    }
    return this.#isStale;
  });

  /** It is not connected, and perhaps only because the service has just started. */
  readonly isReturning = $derived.by(() => fleet.isReturning(this.row));

  readonly alerts = $derived.by(() => alerts.of(this.row.id));
}
