import { failureOf, type Failure } from '../api/failure';

/** What a form, or a button, does: whether it is on its way, and why it did not succeed. */
export class Submission {
  busy = $state(false);
  /** Where several buttons share it, what tells the pressed one from the others; null while nothing is on its way. */
  target = $state<string | null>(null);
  failure = $state.raw<Failure | null>(null);

  /** Runs `act`, unless something is on its way already. Returns its result, or undefined when it failed. */
  async run<T>(act: () => Promise<T>, target: string | null = null): Promise<T | undefined> {
    if (this.busy) return undefined;
    this.busy = true;
    this.target = target;
    this.failure = null;
    try {
      return await act();
    } catch (error) {
      this.failure = failureOf(error);
      return undefined;
    } finally {
      this.busy = false;
      this.target = null;
    }
  }

  /** What is wrong with a field, for [`Field`]. */
  of(...path: (string | number)[]): string | null {
    return this.failure?.of(...path) ?? null;
  }
}

/** What is read from the service and shown: its value, and what became of reading it again. */
export class Loaded<T> {
  value = $state.raw<T | undefined>(undefined);
  failure = $state.raw<Failure | null>(null);
  busy = $state(false);
  readonly #read: () => Promise<T>;
  #asked = 0;

  constructor(read: () => Promise<T>) {
    this.#read = read;
  }

  /** Reads it. What was there stays until there is something newer; the answer to the latest question counts. */
  async load(): Promise<void> {
    const asked = ++this.#asked;
    this.busy = true;
    try {
      const value = await this.#read();
      if (asked !== this.#asked) return;
      this.value = value;
      this.failure = null;
    } catch (error) {
      if (asked === this.#asked) this.failure = failureOf(error);
    } finally {
      if (asked === this.#asked) this.busy = false;
    }
  }

  /**
   * Takes what something else has brought, such as the answer to a change. Whether what is on its way is older or newer than that,
   * nobody knows: it is asked for once more.
   */
  show(value: T): void {
    const wasReading = this.busy;
    this.#asked += 1;
    this.value = value;
    this.failure = null;
    this.busy = false;
    if (wasReading) void this.load();
  }
}
