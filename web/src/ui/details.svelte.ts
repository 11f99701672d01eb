/** At once: a browser asks for six files at a time, by HTTP/1.1, and something is left for others. */
const AT_ONCE = 3;

/** What a list leaves out of its entries: read for each, and again when the entry has changed. */
export class Details<T> {
  #values = $state.raw<ReadonlyMap<string, T>>(new Map());
  readonly #read: (id: string) => Promise<T>;
  readonly #stamps = new Map<string, string>();
  #queue: string[] = [];
  #running = 0;

  constructor(read: (id: string) => Promise<T>) {
    this.#read = read;
  }

  /** What is known of it; undefined until it was read. */
  of(id: string): T | undefined {
    return this.#values.get(id);
  }

  /** Reads those that it does not know as they are now. `stamp` is another one when an entry has changed. */
  want(entries: readonly { id: string; stamp: string }[]): void {
    for (const { id, stamp } of entries) {
      if (this.#stamps.get(id) === stamp) continue;
      this.#stamps.set(id, stamp);
      if (!this.#queue.includes(id)) this.#queue.push(id);
    }
    while (this.#running < AT_ONCE && this.#queue.length > 0) void this.#next();
  }

  async #next(): Promise<void> {
    const id = this.#queue.shift();
    if (id === undefined) return;
    this.#running += 1;
    try {
      const value = await this.#read(id);
      this.#values = new Map(this.#values).set(id, value);
    } catch {
      // The list says what is wrong; the entry stays without it, and is asked for again with the next list.
      this.#stamps.delete(id);
    } finally {
      this.#running -= 1;
    }
    await this.#next();
  }
}
