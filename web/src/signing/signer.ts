// A person's line in the file of signers. Pure.
import { base64, base64Url, fromBase64Url } from './base64';

/** Whether a signer may be called so: a line is split at blanks, a comma separates names, and patterns are refused. */
export function isSignerName(name: string): boolean {
  return /^[^\s,"#*?!]{1,200}$/.test(name);
}

/** The line of a passkey: its owner, its public key in COSE form, and the host whose pages may use it. */
export function signerLine(name: string, key: Uint8Array, host: string): string {
  return `${name} sk-webauthn ${base64Url(key)} ${host}`;
}

/** Kinds of keys that agents take: `ssh-keygen -t`. */
const SSH_KINDS =
  /^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-ssh-ed25519@openssh\.com|sk-ecdsa-sha2-nistp256@openssh\.com)$/;

export interface SshKey {
  kind: string;
  /** In base64, as the file has it. */
  text: string;
  bytes: Uint8Array<ArrayBuffer>;
}

/** The key of a line of OpenSSH, `ssh-ed25519 AAAA... comment`; null for anything else, such as a private key. */
export function readSshKey(line: string): SshKey | null {
  const [kind = '', text = '', ...comment] = line.trim().split(/[ \t]+/);
  if (/[\r\n]/.test(line.trim()) || !SSH_KINDS.test(kind) || comment.length > 20) return null;
  const bytes = bytesOf(text);
  return bytes && nameIn(bytes) === kind ? { kind, text, bytes } : null;
}

/** The line of an SSH key: its owner and the key, without its comment. */
export function sshSignerLine(name: string, key: SshKey): string {
  return `${name} ${key.kind} ${key.text}`;
}

/** As `ssh-keygen -l` shows it. */
export async function fingerprintOf(key: SshKey): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', key.bytes));
  return `SHA256:${base64(hash).replaceAll('=', '')}`;
}

function bytesOf(text: string): Uint8Array<ArrayBuffer> | null {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return null;
  try {
    return fromBase64Url(text);
  } catch {
    return null;
  }
}

/** A key begins with the name of its kind, and the length of that. */
function nameIn(bytes: Uint8Array<ArrayBuffer>): string | null {
  if (bytes.length < 4) return null;
  const length = new DataView(bytes.buffer).getUint32(0);
  return length > 64 ? null : new TextDecoder().decode(bytes.subarray(4, 4 + length));
}
