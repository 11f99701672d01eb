import { untrack } from 'svelte';
import { Steady } from '../../lib/steady.svelte';
import { alerts } from '../../live/alerts.svelte';
import { fleet, type Row } from '../../live/fleet.svelte';
import type { Choice, SortKey } from './choice';
import { fits, grouped, sorted, type Group } from './order';

/** Numbers change each second: what is sorted by them moves no more often than this, so that it can be read. */
const RESORT_MS = 5_000;

/** Nothing moves away from under a pointer that has just moved. One that was left there does not hold it for ever. */
const HELD_MS = 8_000;

const STEADY: readonly SortKey[] = ['name', 'status', 'alerts', 'seen'];

/**
 * The servers that are shown, in order. A message that changes only numbers does not sort them again. While the focus is in a line,
 * nothing moves, and what no longer fits keeps its place.
 */
export class Listing {
  #round = $state(0);
  #sortedAt = 0;
  #touchedAt = -Infinity;
  readonly #choice: () => Choice;
  readonly #steady = new Steady<Row>(({ id }) => id, '[data-number]');

  constructor(choice: () => Choice) {
    this.#choice = choice;
  }

  readonly groups: Group<Row>[] = $derived.by(() => {
    void this.#round;
    const choice = this.#choice();
    const rows = fleet.rows.filter((row) => fits(row, choice));
    const bySeverity = choice.sort === 'alerts' ? alerts.byServer : null;
    for (const row of rows) void row.status;
    this.#sortedAt = Date.now();
    const found = untrack(() => sorted(rows, choice.sort, choice.isReversed, (row) => bySeverity?.get(row.id)?.[0]));
    const order = this.#steady.order(found, JSON.stringify(choice), ({ id }) => fleet.row(id) ?? null);
    return choice.isGrouped ? grouped(order) : [{ tag: null, rows: order }];
  });

  /** How many servers are shown. In several groups the same one counts once. */
  readonly count = $derived(new Set(this.groups.flatMap(({ rows }) => rows)).size);

  /** The element of the list. */
  get within() {
    return this.#steady.within;
  }

  /** The pointer moves over the list. */
  touch(): void {
    this.#touchedAt = Date.now();
  }

  /** Sorts again now and then while numbers come, but not under the focus. Call what it returns when you are done. */
  watch(): () => void {
    return fleet.onReadings(() => {
      if (STEADY.includes(this.#choice().sort)) return;
      const now = Date.now();
      if (now - this.#sortedAt < RESORT_MS || now - this.#touchedAt < HELD_MS) return;
      if (!this.#steady.isHeld) this.#round += 1;
    });
  }
}
