import { alerts } from './alerts.svelte';
import { clock } from './clock.svelte';
import { fleet, type Reading, type Row } from './fleet.svelte';

/** What is shown of a row. Out of sight it stands still, so hundreds of servers cost what a windowful costs. */
export class Shown {
  isSeen = $state(false);
  readonly row: Row;
  #held: Reading | null;
  #age: number | null = null;
  #isStale = false;

  constructor(row: Row) {
    this.row = row;
    this.#held = row.reading;
  }

  readonly reading: Reading | null = $derived.by(() => {
    if (this.isSeen) this.#held = this.row.reading;
    return this.#held;
  });

  readonly age: number | null = $derived.by(() => {
    if (this.isSeen) this.#age = this.row.age(clock.now);
    return this.#age;
  });

  readonly isStale: boolean = $derived.by(() => {
    if (this.isSeen) this.#isStale = this.row.isStale(clock.now, fleet.isLost);
    return this.#isStale;
  });

  readonly alerts = $derived.by(() => alerts.of(this.row.id));
}
