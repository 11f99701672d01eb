// Passkeys that sign. The service never sees their public keys: people write those into the files of their servers.
import * as m from '#messages/signing';
import { Failure } from '../api/failure';
import { refusedPasskey } from '../session/refused';
import { base64Url, fromBase64Url } from './base64';
import { publicKeyOf } from './cose';
import { sha256, type Signature } from './payload';

/** What agents know: ES256, EdDSA, RS256. */
const ALGORITHMS = [-7, -8, -257];
const TIMEOUT_MS = 120_000;

/**
 * Has a passkey sign the bytes of a payload, after its owner was verified. `ids` are those to choose from; none leaves the choice
 * to the browser, which may know more than this page.
 */
export async function signPayload(payload: string, ids: readonly string[]): Promise<Signature> {
  const publicKey: PublicKeyCredentialRequestOptions = {
    challenge: await sha256(payload),
    rpId: location.hostname,
    timeout: TIMEOUT_MS,
    userVerification: 'required',
    allowCredentials: ids.map((id) => ({ type: 'public-key', id: fromBase64Url(id) })),
  };
  const signed = (await navigator.credentials.get({ publicKey }).catch(refuse)) as PublicKeyCredential;
  const response = signed.response as AuthenticatorAssertionResponse;
  const text = (bytes: ArrayBuffer) => base64Url(new Uint8Array(bytes));
  return {
    type: 'webauthn',
    client_data_json: text(response.clientDataJSON),
    authenticator_data: text(response.authenticatorData),
    signature: text(response.signature),
  };
}

/** Makes a passkey that signs commands, and signs nobody in. Returns its id, and its public key in COSE form. */
export async function makeSigningKey(username: string): Promise<{ id: string; publicKey: Uint8Array }> {
  const random = () => crypto.getRandomValues(new Uint8Array(32));
  const publicKey: PublicKeyCredentialCreationOptions = {
    challenge: random(),
    rp: { id: location.hostname, name: 'Signalbox' },
    // An id of its own: with that of the account it would replace the passkey that signs in.
    user: { id: random(), name: m.keyUser({ username }), displayName: m.keyUser({ username }) },
    pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: 'public-key', alg })),
    timeout: TIMEOUT_MS,
    authenticatorSelection: { residentKey: 'required', requireResidentKey: true, userVerification: 'required' },
    attestation: 'none',
  };
  const made = (await navigator.credentials.create({ publicKey }).catch(refuse)) as PublicKeyCredential;
  const response = made.response as AuthenticatorAttestationResponse;
  const key = publicKeyOf(new Uint8Array(response.getAuthenticatorData()));
  if (!key) throw new Failure(0, 'passkey', m.noPublicKey());
  return { id: base64Url(new Uint8Array(made.rawId)), publicKey: key };
}

function refuse(error: unknown): never {
  throw refusedPasskey(error);
}
