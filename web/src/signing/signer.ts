// A person's line in the file of signers. Pure.
import { base64Url } from './base64';

/** Whether a signer may be called so: a line is split at blanks, a comma separates names, and patterns are refused. */
export function isSignerName(name: string): boolean {
  return /^[^\s,"#*?!]{1,200}$/.test(name);
}

/** The line of a passkey: its owner, its public key in COSE form, and the host whose pages may use it. */
export function signerLine(name: string, key: Uint8Array, host: string): string {
  return `${name} sk-webauthn ${base64Url(key)} ${host}`;
}
