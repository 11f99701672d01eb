import { serviceInfo, type ServiceInfo } from './service';

/** A door that waits longer than this is opened without knowing. */
const PATIENCE_MS = 3_000;
/** What is on its way is of use later too. */
const ANSWER_MS = 60_000;

/** What the service tells everybody, signed in or not. */
class Service {
  /** What is known of it; null until it was asked, and where it does not say. */
  info = $state.raw<ServiceInfo | null>(null);
  #asking: Promise<void> | null = null;
  #isAsking = $state(false);
  #askedAt = 0;

  /** Asks it, and waits a little for what it says. Never fails: what is not known restricts nothing. */
  async load(): Promise<void> {
    // One that is older may never be answered.
    if (!this.#asking || Date.now() - this.#askedAt >= PATIENCE_MS) {
      this.#askedAt = Date.now();
      this.#isAsking = true;
      const mine = this.#ask().finally(() => {
        if (this.#asking !== mine) return;
        this.#asking = null;
        this.#isAsking = false;
      });
      this.#asking = mine;
    }
    await Promise.race([this.#asking, new Promise((done) => setTimeout(done, PATIENCE_MS))]);
  }

  async #ask(): Promise<void> {
    try {
      const response = await fetch('/api/v1/service', { signal: AbortSignal.timeout(ANSWER_MS) });
      if (response.ok) this.info = serviceInfo(await response.json());
    } catch {
      // It is asked again with the next page that wants to know.
    }
  }

  /** Whether nothing is known of it yet, and an answer is on its way. */
  get isAwaited(): boolean {
    return this.info === null && this.#isAsking;
  }

  /** The address under which servers reach the service: the configured one, else the one in the browser. */
  get address(): string {
    return this.info?.public_url ?? location.origin;
  }
}

export const service = new Service();
