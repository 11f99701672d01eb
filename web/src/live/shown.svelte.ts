import { untrack } from 'svelte';
import { whole } from '../lib/format';
import { alerts } from './alerts.svelte';
import { clock } from './clock.svelte';
import { fleet, type Reading, type Row } from './fleet.svelte';
import { Turn } from './turns';
import { Watched } from './watched.svelte';

/** Numbers that change faster are not read where many stand side by side. Most agents measure less often anyway. */
const READ_MS = 2_000;
/** The same for small print. */
const PRINT_MS = 4_000;

/**
 * What is shown of a row. Out of sight it stands still, so hundreds of servers cost what a windowful costs. Made while a component
 * is, with which it ends.
 *
 * Each number is set for itself when its turn comes, and costs nothing where it is not shown. Derived from the reading of the row it would be computed again with
 * each message, and everything that shows it be asked whether it has changed: that took most of the time of an update.
 */
export class Shown {
  readonly row: Row;
  #isSeen = $state(false);
  /** Shares of a whole, without digits behind the point. */
  #cpu = new Watched<number | null>(null);
  #memory = new Watched<number | null>(null);
  #disk = new Watched<number | null>(null);
  /** For small print: it may be a moment older. */
  #print = new Watched<Reading | null>(null);
  #reading: Reading | null = null;
  readonly #turn: Turn<Reading>;
  readonly #printTurn = new Turn<Reading>(PRINT_MS);
  #age: number | null = null;
  #isStale = false;

  /** `readMs`: how often its numbers change at most. */
  constructor(row: Row, readMs = READ_MS) {
    this.row = row;
    this.#turn = new Turn<Reading>(readMs);
    untrack(() => this.#look());
    $effect(() => row.follow(() => untrack(() => this.#look())));
  }

  get isSeen(): boolean {
    return this.#isSeen;
  }

  set isSeen(isSeen: boolean) {
    this.#isSeen = isSeen;
    if (isSeen) untrack(() => this.#look());
  }

  get cpu(): number | null {
    return this.#cpu.value;
  }

  get memory(): number | null {
    return this.#memory.value;
  }

  get disk(): number | null {
    return this.#disk.value;
  }

  get print(): Reading | null {
    return this.#print.value;
  }

  #look(): void {
    // What was never shown is shown as it is.
    if (!this.#isSeen && this.#reading !== null) return;
    const isLast = this.row.status !== 'online';
    const now = performance.now();
    const reading = this.#turn.take(this.row.reading, isLast, now);
    if (reading !== this.#reading) {
      this.#reading = reading;
      this.#cpu.value = whole(reading?.cpu_percent);
      this.#memory.value = whole(reading?.memory_percent);
      this.#disk.value = whole(reading?.disk_percent);
    }
    this.#print.value = this.#printTurn.take(reading, isLast, now);
  }

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
