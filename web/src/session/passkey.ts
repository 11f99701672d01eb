// What the browser's authenticators are asked, and their answers as the API takes them.
import type { components } from '../../generated/api';
import { base64Url, fromBase64Url } from '../signing/base64';

type Schemas = components['schemas'];

/** Whether this page can use passkeys: the browser knows them, and the page came over HTTPS or from this machine. */
export function hasPasskeys(): boolean {
  return typeof PublicKeyCredential !== 'undefined' && typeof navigator.credentials?.create === 'function';
}

const textOf = (bytes: ArrayBuffer) => base64Url(new Uint8Array(bytes));

/** Makes a passkey. Throws what the browser does: `NotAllowedError` where the person cancelled. */
export async function createPasskey(
  options: Schemas['RegistrationOptionsOut'],
): Promise<Schemas['PasskeyIn']['credential']> {
  const publicKey: PublicKeyCredentialCreationOptions = {
    challenge: fromBase64Url(options.challenge),
    rp: options.rp,
    user: { ...options.user, id: fromBase64Url(options.user.id) },
    pubKeyCredParams: options.pubKeyCredParams.map(({ alg }) => ({ type: 'public-key', alg })),
    timeout: options.timeout,
    excludeCredentials: options.excludeCredentials.map(({ id }) => ({ type: 'public-key', id: fromBase64Url(id) })),
    authenticatorSelection: { residentKey: 'required', requireResidentKey: true, userVerification: 'required' },
    attestation: 'none',
  };
  const made = (await navigator.credentials.create({ publicKey })) as PublicKeyCredential;
  const response = made.response as AuthenticatorAttestationResponse;
  return {
    response: {
      clientDataJSON: textOf(response.clientDataJSON),
      attestationObject: textOf(response.attestationObject),
    },
  };
}

/** Has a passkey sign the challenge. */
export async function usePasskey(options: Schemas['ChallengeOut']): Promise<Schemas['PasskeyLoginIn']['credential']> {
  const publicKey: PublicKeyCredentialRequestOptions = {
    challenge: fromBase64Url(options.challenge),
    rpId: options.rpId,
    timeout: options.timeout,
    userVerification: 'required',
  };
  const signed = (await navigator.credentials.get({ publicKey })) as PublicKeyCredential;
  const response = signed.response as AuthenticatorAssertionResponse;
  return {
    id: textOf(signed.rawId),
    response: {
      clientDataJSON: textOf(response.clientDataJSON),
      authenticatorData: textOf(response.authenticatorData),
      signature: textOf(response.signature),
      ...(response.userHandle ? { userHandle: textOf(response.userHandle) } : {}),
    },
  };
}
