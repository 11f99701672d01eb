import { untrack } from 'svelte';
import type { Page } from '../api/client';
import { failureOf, type Failure } from '../api/failure';

/** A list that is read a page at a time, newest first. */
export class Paged<T> {
  items = $state.raw<T[]>([]);
  total = $state(0);
  failure = $state.raw<Failure | null>(null);
  busy = $state(false);
  /** Whether what was asked for has been read: until then nobody knows that there is nothing. */
  isKnown = $state(false);
  readonly #read: (offset: number, limit: number) => Promise<Page<T>>;
  readonly #key: (item: T) => string | number;
  readonly #limit: number;
  /** How many were read: of what comes twice, one is shown. */
  #taken = $state(0);
  #last: [offset: number, limit: number];
  #asked = 0;

  constructor(
    read: (offset: number, limit: number) => Promise<Page<T>>,
    key: (item: T) => string | number,
    limit = 50,
  ) {
    this.#read = read;
    this.#key = key;
    this.#limit = limit;
    this.#last = [0, limit];
  }

  get hasMore(): boolean {
    return this.#taken < this.total;
  }

  /** Reads it again, as much as is shown. An effect that does so does not depend on what is shown. */
  load(): Promise<void> {
    const taken = untrack(() => this.#taken);
    return this.#page(0, Math.min(500, Math.max(this.#limit, taken)));
  }

  /** Reads it again for another question: only its beginning. */
  restart(): Promise<void> {
    this.isKnown = false;
    return this.#page(0, this.#limit);
  }

  more(): Promise<void> {
    return this.#page(this.#taken, this.#limit);
  }

  /** Reads what could not be read: the page that was asked for last. */
  retry(): Promise<void> {
    return this.#page(...this.#last);
  }

  async #page(offset: number, limit: number): Promise<void> {
    const asked = ++this.#asked;
    this.#last = [offset, limit];
    this.busy = true;
    try {
      const page = await this.#read(offset, limit);
      if (asked !== this.#asked) return;
      this.items = this.#joined(offset === 0 ? [] : this.items, page.items);
      this.#taken = offset + page.items.length;
      this.total = page.total;
      this.failure = null;
      this.isKnown = true;
    } catch (error) {
      if (asked === this.#asked) this.failure = failureOf(error);
    } finally {
      if (asked === this.#asked) this.busy = false;
    }
  }

  /**
   * What is new since moves the rest on, so a page may begin with what is there already. A list that an agent has made may have
   * the same twice.
   */
  #joined(known: readonly T[], items: readonly T[]): T[] {
    const byKey = new Map<string | number, T>();
    for (const item of [...known, ...items]) if (!byKey.has(this.#key(item))) byKey.set(this.#key(item), item);
    return [...byKey.values()];
  }
}
