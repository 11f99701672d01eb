// Proofs of identity in a session: the service asks for one with 403, the dialog gets it, and the request is made again.
import { api, take, useProofs, type ProofCode } from '../api/client';
import type { PasskeyLogin, Profile } from '../api/types';
import { router } from '../router/router.svelte';
import { session } from './session.svelte';

export type Given = { password: string } | { otp: string } | { passkey: PasskeyLogin['credential'] };

/** Where second factors are made. */
const SECURITY = '/account/security';

interface Asked {
  code: ProofCode;
  /** What the account can prove with. */
  factors: Profile['second_factor'];
}

class Proofs {
  asked = $state.raw<Asked | null>(null);
  #answered: Promise<boolean> | null = null;
  #settle: ((proved: boolean) => void) | null = null;

  constructor() {
    useProofs((code) => this.need(code));
  }

  /** Asks for a proof. Requests that need one at the same time wait for the same dialog. */
  need(code: ProofCode): Promise<boolean> {
    this.#answered ??= this.#ask(code).finally(() => (this.#answered = null));
    return this.#answered;
  }

  async #ask(code: ProofCode): Promise<boolean> {
    const user = await take(api.GET('/api/v1/auth/me')).catch(() => null);
    if (!user) return false;
    session.user = user;
    const { totp, passkeys } = user.second_factor;
    if (code === 'second_factor_required' && !totp && passkeys === 0) {
      session.lacksFactor = true;
      if (router.path !== SECURITY) router.go(SECURITY);
      return false;
    }
    return new Promise((settle) => {
      this.#settle = settle;
      this.asked = { code, factors: user.second_factor };
    });
  }

  /** Proves it. Throws a failure where the service refuses. */
  async give(given: Given): Promise<void> {
    await take(api.POST('/api/v1/auth/step-up', { body: given }));
    this.settle(true);
  }

  settle(proved: boolean): void {
    this.asked = null;
    this.#settle?.(proved);
    this.#settle = null;
  }
}

export const proofs = new Proofs();
