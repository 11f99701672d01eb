// Commands that wait for signatures. No socket carries them: they are asked for again while somebody looks.
import { api, takePage } from '../api/client';
import { failureOf, type Failure } from '../api/failure';
import type { ApprovalSummary } from '../api/types';
import { session } from '../session/session.svelte';

/** More than that wait nowhere: an account has at most 50. */
const MOST = 200;

/** The service knows a passkey by the account that has brought its signature. */
export const PASSKEY_OF = /^passkey of (.+)$/;

/** Whether somebody has brought a signature. */
export function hasSigned(
  approval: Pick<ApprovalSummary, 'signatures'>,
  user: { id: string; username: string } | null,
): boolean {
  return approval.signatures.some(
    ({ signer, username }) => user !== null && (username === user.username || PASSKEY_OF.exec(signer)?.[1] === user.id),
  );
}

class Waiting {
  /** Null until it was read. */
  items = $state.raw<ApprovalSummary[] | null>(null);
  failure = $state.raw<Failure | null>(null);
  readonly #watchers = new Set<{ everyMs: number }>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #asked = 0;
  #isAsking = false;

  /** Those that lack the signature of who is signed in. */
  readonly forMe = $derived((this.items ?? []).filter((item) => !hasSigned(item, session.user)).length);

  /** Reads them every so many milliseconds, until what it gives is called. */
  watch(everyMs: number): () => void {
    const watcher = { everyMs };
    this.#watchers.add(watcher);
    const seen = () => document.hidden || void this.load();
    document.addEventListener('visibilitychange', seen);
    if (!this.#isAsking) void this.load();
    return () => {
      this.#watchers.delete(watcher);
      document.removeEventListener('visibilitychange', seen);
      if (this.#watchers.size > 0) return;
      clearTimeout(this.#timer);
      this.items = null;
    };
  }

  async load(): Promise<void> {
    const asked = ++this.#asked;
    clearTimeout(this.#timer);
    this.#isAsking = true;
    try {
      const query = { status: 'awaiting_approval', limit: MOST } as const;
      const { items } = await takePage(api.GET('/api/v1/commands/approvals', { params: { query } }));
      if (asked !== this.#asked || this.#watchers.size === 0) return;
      this.items = items;
      this.failure = null;
    } catch (error) {
      if (asked === this.#asked) this.failure = failureOf(error);
    } finally {
      if (asked === this.#asked) {
        this.#isAsking = false;
        this.#again();
      }
    }
  }

  #again(): void {
    if (this.#watchers.size === 0 || document.hidden) return;
    const everyMs = Math.min(...[...this.#watchers].map((watcher) => watcher.everyMs));
    this.#timer = setTimeout(() => void this.load(), everyMs);
  }
}

export const waiting = new Waiting();
