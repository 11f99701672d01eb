// How somebody signs in a dialog: with a passkey of this device, or with an SSH key elsewhere.
import { hasPasskeys } from '../session/passkey';
import { keptKeys } from './kept';
import { signPayload } from './passkeys';
import { pastedSignatures, type Signature } from './payload';

export class Way {
  kind = $state<'passkey' | 'ssh'>(hasPasskeys() ? 'passkey' : 'ssh');
  /** What `ssh-keygen` wrote. */
  pasted = $state('');
  keys = $state.raw(keptKeys());
  /** Any passkey of this host, not only those that were made here. */
  isAny = $state(false);

  readonly ids = $derived(this.isAny ? [] : this.keys.map((key) => key.id));
  readonly #found = $derived(pastedSignatures(this.pasted));

  /** How many signatures it gives; none where nothing was pasted. */
  get count(): number {
    return this.kind === 'passkey' ? 1 : this.#found.length;
  }

  async sign(payload: string): Promise<Signature[]> {
    return this.kind === 'ssh' ? this.#found : [await signPayload(payload, this.ids)];
  }
}
