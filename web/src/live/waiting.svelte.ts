// Commands that wait for signatures. No socket carries them: they are asked for again while somebody looks.
import { api, takePage } from '../api/client';
import type { ApprovalSummary } from '../api/types';
import { session } from '../session/session.svelte';
import { Polled } from '../ui/polled.svelte';

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

class Waiting extends Polled<ApprovalSummary[]> {
  readonly #periods = new Set<{ ms: number }>();

  /** Those that lack the signature of who is signed in. */
  readonly forMe = $derived((this.value ?? []).filter((item) => !hasSigned(item, session.user)).length);

  constructor() {
    super(read, () => Math.min(...Array.from(this.#periods, ({ ms }) => ms)));
  }

  /** While nobody watches, nothing is kept: somebody else may sign in. */
  override async load(): Promise<void> {
    if (this.#periods.size > 0) await super.load();
  }

  override show(value: ApprovalSummary[], tookMs?: number): void {
    if (this.#periods.size > 0) super.show(value, tookMs);
  }

  /** Reads them every so many milliseconds, or more often where another part of the page asks for that. */
  watchEvery(ms: number): () => void {
    const period = { ms };
    this.#periods.add(period);
    const stop = this.watch();
    return () => {
      this.#periods.delete(period);
      stop();
      if (this.#periods.size === 0) this.forget();
    };
  }
}

async function read(): Promise<ApprovalSummary[]> {
  const query = { status: 'awaiting_approval', limit: MOST } as const;
  return (await takePage(api.GET('/api/v1/commands/approvals', { params: { query } }))).items;
}

export const waiting = new Waiting();
