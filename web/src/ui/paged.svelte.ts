import { untrack } from 'svelte';
import type { Page } from '../api/client';
import { failureOf, type Failure } from '../api/failure';

/** A list that is read a page at a time, newest first. */
export class Paged<T> {
  items = $state.raw<T[]>([]);
  total = $state(0);
  failure = $state.raw<Failure | null>(null);
  /** Something is on its way, maybe without anybody's having asked for it: nothing is disabled by that. */
  isReading = $state(false);
  /** What somebody asked for is on its way. Until it is there, the same is not asked for again. */
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
  /** What somebody asked for; and the reading that waits for its answer. */
  #wish: Promise<void> | null = null;
  #later: Promise<void> | null = null;

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

  /**
   * Reads it again, as much as is shown, where nobody has asked for that: after what somebody did ask for. An effect that does so does
   * not depend on what is shown.
   */
  load(): Promise<void> {
    if (!this.#wish) return this.#page(0, this.#shown());
    return (this.#later ??= this.#wish.then(() => {
      this.#later = null;
      return this.load();
    }));
  }

  /** The same, for somebody who asks for it. */
  refresh(): Promise<void> {
    return this.#wish ?? this.#ask(0, this.#shown());
  }

  /** Reads it again for another question: only its beginning. */
  restart(): Promise<void> {
    this.isKnown = false;
    return this.#ask(0, this.#limit);
  }

  more(): Promise<void> {
    return this.#wish ?? this.#ask(this.#taken, this.#limit);
  }

  /** Reads what could not be read: the page that was asked for last. */
  retry(): Promise<void> {
    return this.#wish ?? this.#ask(...this.#last);
  }

  #shown(): number {
    const taken = untrack(() => this.#taken);
    return Math.min(500, Math.max(this.#limit, taken));
  }

  #ask(offset: number, limit: number): Promise<void> {
    // What is on its way would not be taken any more. A page does not replace it.
    const isOwed = offset > 0 && this.isReading;
    const wish = this.#page(offset, limit).finally(() => {
      if (this.#wish !== wish) return;
      this.#wish = null;
      this.busy = false;
    });
    this.#wish = wish;
    this.busy = true;
    if (isOwed) void this.load();
    return wish;
  }

  async #page(offset: number, limit: number): Promise<void> {
    const asked = ++this.#asked;
    this.#last = [offset, limit];
    this.isReading = true;
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
      if (asked === this.#asked) this.isReading = false;
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
