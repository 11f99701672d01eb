import { clock } from '../../../live/clock.svelte';
import { api, take } from '../../../api/client';
import { failureOf, type Failure } from '../../../api/failure';
import type { Processes } from '../../../api/types';

/** Answers that are kept: moving the cursor to and fro asks once. */
const KEPT = 120;
/** Agents look at the processes now and then: the lists of a minute are taken for one. */
const MINUTE = 60;

/** The processes that used the most at a time. */
export class TopProcesses {
  value = $state.raw<Processes | null>(null);
  failure = $state.raw<Failure | null>(null);
  busy = $state(false);
  /** What is there is of another time than the one that is wanted. */
  isOther = $state(false);
  /** Of which minute it is; null for now, undefined before the first answer. */
  #of: number | null | undefined;
  readonly #id: string;
  readonly #known = new Map<number, Processes | null>();
  #asked = 0;

  constructor(id: string) {
    this.#id = id;
  }

  /** Which minute a time is read as; null for now. */
  #minuteOf(at: number | null): number | null {
    const minute = at === null ? null : Math.floor(at / MINUTE);
    return minute !== null && minute < Math.floor(clock.present() / 1000 / MINUTE) ? minute : null;
  }

  /** Says that another time is wanted, before it is read. */
  aim(at: number | null): void {
    const isOther = this.#of !== this.#minuteOf(at);
    // That the list of before could not be renewed says nothing of this time.
    if (isOther && !this.isOther) this.failure = null;
    this.isOther = isOther;
  }

  /** Of a time in seconds, or of now. Null where nothing is known. */
  async load(at: number | null): Promise<void> {
    const asked = ++this.#asked;
    const minute = this.#minuteOf(at);
    this.aim(at);
    const known = minute === null ? undefined : this.#known.get(minute);
    if (known !== undefined) {
      this.#show(known, minute);
      this.busy = false;
      return;
    }
    this.busy = true;
    try {
      // The end of the minute, so that all of the minute counts.
      const query = minute !== null ? { at: new Date((minute + 1) * MINUTE * 1000 - 1).toISOString() } : {};
      const found = await this.#read(query);
      if (minute !== null) this.#keep(minute, found);
      if (asked !== this.#asked) return;
      this.#show(found, minute);
    } catch (error) {
      if (asked === this.#asked) this.failure = failureOf(error);
    } finally {
      if (asked === this.#asked) this.busy = false;
    }
  }

  #show(found: Processes | null, minute: number | null): void {
    this.value = found;
    this.failure = null;
    this.#of = minute;
    this.isOther = false;
  }

  async #read(query: { at?: string }): Promise<Processes | null> {
    const params = { path: { server_id: this.#id }, query };
    try {
      return await take(api.GET('/api/v1/metrics/{server_id}/processes', { params }));
    } catch (error) {
      if (failureOf(error).status === 404) return null;
      throw error;
    }
  }

  #keep(minute: number, found: Processes | null): void {
    this.#known.set(minute, found);
    const oldest = this.#known.keys().next().value;
    if (this.#known.size > KEPT && oldest !== undefined) this.#known.delete(oldest);
  }
}
