// A command that waits for signatures, as its page shows it: asked for again while it waits and somebody looks.
import { api, take } from '../../../api/client';
import { failureOf, type Failure } from '../../../api/failure';
import type { Approval } from '../../../api/types';
import type { Signature } from '../../../signing/payload';

const LOOK_MS = 3_000;
const MOST_MS = 15_000;

export class ShownApproval {
  readonly id: string;
  value = $state.raw<Approval | null>(null);
  failure = $state.raw<Failure | null>(null);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isWatched = false;
  #failures = 0;

  constructor(id: string) {
    this.id = id;
  }

  get isWaiting(): boolean {
    return this.value?.status === 'awaiting_approval';
  }

  /** Watches until what it gives is called. */
  watch(): () => void {
    this.#isWatched = true;
    const seen = () => !document.hidden && (this.isWaiting || !this.value) && void this.load();
    document.addEventListener('visibilitychange', seen);
    void this.load();
    return () => {
      this.#isWatched = false;
      clearTimeout(this.#timer);
      document.removeEventListener('visibilitychange', seen);
    };
  }

  async load(): Promise<void> {
    clearTimeout(this.#timer);
    try {
      this.value = await take(api.GET('/api/v1/commands/approvals/{id}', this.#path));
      this.failure = null;
      this.#failures = 0;
    } catch (error) {
      this.failure = failureOf(error);
      this.#failures += 1;
      if (!this.failure.isPassing) return;
    }
    clearTimeout(this.#timer);
    if (!this.#isWatched || document.hidden || (this.value && !this.isWaiting)) return;
    this.#timer = setTimeout(() => void this.load(), Math.min(MOST_MS, LOOK_MS * 2 ** this.#failures));
  }

  async sign(signature: Signature): Promise<void> {
    this.value = await take(api.POST('/api/v1/commands/approvals/{id}/signatures', { ...this.#path, body: signature }));
  }

  async withdraw(): Promise<void> {
    await take(api.DELETE('/api/v1/commands/approvals/{id}', this.#path));
    await this.load();
  }

  get #path() {
    return { params: { path: { id: this.id } } };
  }
}
