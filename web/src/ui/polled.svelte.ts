import { untrack } from 'svelte';
import { failureOf, type Failure } from '../api/failure';

/** Until something is known for the first time. */
const FIRST_MS = 1_000;
/** While the service cannot be reached, the pause doubles after each failure, up to this. After a refusal it is this at once. */
const MOST_MS = 15_000;
/** What is not there, or not there any more, does not come back: there is nothing to ask for again. */
const FINAL = [404, 410, 422];

/** What no socket carries: it is read again and again while somebody looks. */
export class Polled<T> {
  /** Null until it was read. */
  value = $state.raw<T | null>(null);
  failure = $state.raw<Failure | null>(null);
  readonly #read: () => Promise<T>;
  readonly #pause: (value: T, tookMs: number) => number | null;
  readonly #stops = new Set<() => void>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #asked = 0;
  #isAsking = false;
  #failures = 0;

  /** `pause` says how long what was read stays as it is, from how long it took to read it: null where it stays for ever. */
  constructor(read: () => Promise<T>, pause: (value: T, tookMs: number) => number | null) {
    this.#read = read;
    this.#pause = pause;
  }

  /** Watches until what it gives is called. */
  watch(): () => void {
    const stop = () => {
      if (!this.#stops.delete(stop) || this.#stops.size > 0) return;
      clearTimeout(this.#timer);
      document.removeEventListener('visibilitychange', this.#seen);
    };
    if (this.#stops.size === 0) document.addEventListener('visibilitychange', this.#seen);
    this.#stops.add(stop);
    if (!this.#isAsking) untrack(() => void this.load());
    return stop;
  }

  /** Reads it now. What was there stays until there is something newer; the answer to the latest question counts. */
  async load(): Promise<void> {
    clearTimeout(this.#timer);
    const asked = ++this.#asked;
    this.#isAsking = true;
    const askedAt = performance.now();
    try {
      const value = await this.#read();
      if (asked === this.#asked) this.show(value, performance.now() - askedAt);
    } catch (error) {
      if (asked !== this.#asked) return;
      this.#isAsking = false;
      this.failure = failureOf(error);
      this.#failures += 1;
      if (FINAL.includes(this.failure.status)) return;
      const pause = this.value === null ? FIRST_MS : this.#pause(this.value, 0);
      this.#later(pause === null || this.failure.isPassing ? pause : Math.max(pause, MOST_MS));
    }
  }

  /** Takes what something else has brought, such as the answer to a change: newer than what is on its way. */
  show(value: T, tookMs = 0): void {
    this.#asked += 1;
    this.#isAsking = false;
    this.value = value;
    this.failure = null;
    this.#failures = 0;
    this.#later(this.#pause(value, tookMs));
  }

  /** Knows nothing any more, as before it was read. */
  forget(): void {
    this.#asked += 1;
    this.#isAsking = false;
    this.value = null;
    this.failure = null;
    this.#failures = 0;
  }

  readonly #seen = () => {
    const isOver = this.value !== null && this.#pause(this.value, 0) === null;
    const isFinal = this.failure !== null && FINAL.includes(this.failure.status);
    if (!document.hidden && !isOver && !isFinal) void this.load();
  };

  #later(pause: number | null): void {
    clearTimeout(this.#timer);
    if (pause === null || this.#stops.size === 0 || document.hidden) return;
    const more = this.#failures === 0 ? 1 : 2 ** this.#failures;
    this.#timer = setTimeout(() => void this.load(), Math.max(pause, Math.min(MOST_MS, pause * more)));
  }
}
