// Why an agent did not accept what was signed, and what helps. Pure.
import * as m from '#messages/signing';
import type { components } from '../../generated/api';

export type Reason = NonNullable<components['schemas']['Error']['reason']>;

export const REASONS: Record<Reason, { title: () => string; help: () => string }> = {
  not_signed: { title: m.notSigned, help: m.notSignedHelp },
  unknown_signer: { title: m.unknownSigner, help: m.unknownSignerHelp },
  wrong_server: { title: m.wrongServer, help: m.wrongServerHelp },
  expired: { title: m.expired, help: m.expiredHelp },
  replayed: { title: m.replayed, help: m.replayedHelp },
  not_enough_approvals: { title: m.notEnough, help: m.notEnoughHelp },
};

/**
 * What agents say, by reason: signing/src/verdict.rs, agent/src/signed/. Terminals of an older instance, and commands that ended
 * before the service kept reasons, have the sentence alone. A test compares both.
 */
export const SAID: Record<Reason, RegExp[]> = {
  not_signed: [
    /runs what its operators have signed only/i,
    /^the signed payload has another/i,
    /^the signed payload is for a /i,
  ],
  unknown_signer: [/^no signature is by a signer/i],
  wrong_server: [/^the signed payload is for other servers/i],
  expired: [
    /^the signed payload holds from/i,
    /^the signed payload held until/i,
    /^this server (knows only since|has forgotten)/i,
  ],
  replayed: [/^what was signed has run already/i],
  not_enough_approvals: [/signers have signed, who have to be different people/i],
};

/** The reason of a refusal; null where the agent refused for another one. */
export function reasonOf(
  error: { code: string; detail: string; reason?: Reason | null } | null | undefined,
): Reason | null {
  if (error?.code !== 'agent_refused') return null;
  // An agent may give one that is not about signatures.
  if (error.reason && error.reason in REASONS) return error.reason;
  const found = Object.entries(SAID).find(([, patterns]) => patterns.some((pattern) => pattern.test(error.detail)));
  return found ? (found[0] as Reason) : null;
}
