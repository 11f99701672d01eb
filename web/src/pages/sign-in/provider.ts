// Sign-in at the identity provider: the address that begins it, and what the service said of how it ended.
import * as m from '#messages/signIn';

/** The parameter in which the service says how a sign-in or a link ended. */
export const OUTCOME = 'oidc';

const words: Record<string, (given: { provider: string }) => string> = {
  unavailable: m.oidcUnavailable,
  busy: m.oidcBusy,
  expired: m.oidcExpired,
  denied: m.oidcDenied,
  failed: m.oidcFailed,
  not_allowed: m.oidcNotAllowed,
  setup_required: m.oidcSetupRequired,
  no_email: m.oidcNoEmail,
  email_unverified: m.oidcEmailUnverified,
  email_taken: m.oidcEmailTaken,
  session_ended: m.oidcSessionEnded,
  linked_elsewhere: m.oidcLinkedElsewhere,
  step_up_required: m.oidcStepUpRequired,
  linked: m.oidcLinked,
};

/** The sentence for an outcome; null where there is none. An outcome of a newer service is a failure. */
export function outcomeWords(outcome: string | null, provider: string): string | null {
  if (outcome === null) return null;
  const known = Object.hasOwn(words, outcome) ? words[outcome] : undefined;
  return (known ?? m.oidcFailed)({ provider });
}

/** Where a sign-in at the provider begins. Afterwards the service shows `page`. */
export function startOf(page: string | null): string {
  const query = new URLSearchParams(page && page !== '/' ? { return_to: page } : {});
  return `/api/v1/auth/oidc/start${query.size ? `?${query}` : ''}`;
}

/** Where the link of the own account to one at the provider begins. */
export const LINK = '/api/v1/auth/oidc/start?link=1';
