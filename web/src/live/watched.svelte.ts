/**
 * A value that is set far more often than somebody depends on it, such as the newest reading of each of a thousand servers. A
 * `$state` makes the page look for what depends on it each time it is set. This does so once after each time that it was read.
 */
export class Watched<T> {
  #value: T;
  /** Whether an effect or a derived value has read it since it last reported a change. */
  #isRead = false;
  #changes = 0;
  #reported = $state(0);

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    if ($effect.tracking()) {
      this.#isRead = true;
      void this.#reported;
    }
    return this.#value;
  }

  set value(value: T) {
    if (value === this.#value) return;
    this.#value = value;
    if (!this.#isRead) return;
    this.#isRead = false;
    this.#reported = this.#changes += 1;
  }
}
