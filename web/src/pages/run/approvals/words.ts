// A command that waits for signatures, as people say it. Pure.
import * as m from '#messages/approvals';
import type { ApprovalStatus, ApprovalSummary } from '../../../api/types';
import { PASSKEY_OF } from '../../../live/waiting.svelte';
import type { Tone } from '../../../ui/Badge.svelte';

export const STATUSES: Record<ApprovalStatus, { label: () => string; tone: Tone }> = {
  awaiting_approval: { label: m.awaiting, tone: 'accent' },
  approved: { label: m.approved, tone: 'ok' },
  expired: { label: m.expired, tone: 'warn' },
  withdrawn: { label: m.withdrawn, tone: 'idle' },
};

/** What it is by now: the service says that it has expired some seconds later. */
export function statusAt(
  { status, expires_at }: Pick<ApprovalSummary, 'status' | 'expires_at'>,
  now: number,
): ApprovalStatus {
  return status === 'awaiting_approval' && Date.parse(expires_at) <= now ? 'expired' : status;
}

/** With what somebody has signed: the service knows SSH keys by their fingerprints, and passkeys not at all. */
export function signerWords(signer: string): string {
  return PASSKEY_OF.test(signer) ? m.aPasskey() : m.withKey({ fingerprint: signer });
}

/** Why agents refused the signatures that there were, and what helps. */
export function refusedWords(reason: NonNullable<ApprovalSummary['refused_reason']>): string {
  return reason === 'unknown_signer' ? m.refusedStrangers() : m.refusedFew();
}

/** More names are counted. */
const MOST_NAMES = 4;

export function someOf<T>(all: readonly T[]): { shown: readonly T[]; more: number } {
  const shown = all.length > MOST_NAMES + 1 ? all.slice(0, MOST_NAMES) : all;
  return { shown, more: all.length - shown.length };
}
