// A challenge of the service, signed with a passkey: what a sign-in and a proof of identity are given.
import { api, take } from '../api/client';
import type { PasskeyLogin } from '../api/types';
import { usePasskey } from './passkey';
import { refusedPasskey } from './refused';

/** Gets a challenge and has a passkey sign it. Throws a failure where the service or the browser refuses. */
export async function signedChallenge(): Promise<PasskeyLogin['credential']> {
  const options = await take(api.POST('/api/v1/auth/passkeys/challenge'));
  return usePasskey(options).catch((error: unknown) => {
    throw refusedPasskey(error);
  });
}
