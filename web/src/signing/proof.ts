// What an entry of the audit log keeps of signatures, for people. It says which keys signed; whose they are, and whether the
// signatures are right, is known to who has the files of signers. Pure.
import { fromBase64Url } from './base64';

export interface Proof {
  /** What was signed, as text. */
  payload: string;
  /** The names of the servers that it is for. */
  servers: string[];
  expiresAt: string | null;
  signers: Signer[];
}

/** A key that signed: of SSH with its kind and its public part, or a passkey, whose signature does not name it. */
export type Signer =
  { kind: 'passkey' } | { kind: 'ssh'; type: string; key: Uint8Array<ArrayBuffer> } | { kind: 'unknown' };

/** What `detail.signed` of an entry holds; null where it is nothing of the kind. */
export function proofOf(signed: unknown): Proof | null {
  if (!isRecord(signed) || typeof signed.payload !== 'string' || !Array.isArray(signed.signatures)) return null;
  const payload = textOf(signed.payload);
  if (payload === null) return null;
  const fields = parsed(payload);
  const servers = Array.isArray(fields.servers) ? fields.servers.filter((name) => typeof name === 'string') : [];
  const expiresAt = typeof fields.expires_at === 'string' ? fields.expires_at : null;
  return { payload, servers, expiresAt, signers: signed.signatures.map(signerOf) };
}

function signerOf(signature: unknown): Signer {
  if (!isRecord(signature)) return { kind: 'unknown' };
  if (signature.type === 'webauthn') return { kind: 'passkey' };
  const key =
    signature.type === 'sshsig' && typeof signature.signature === 'string' ? keyOf(signature.signature) : null;
  return key ?? { kind: 'unknown' };
}

/** The public key in an SSH signature: after `SSHSIG` and the version, a string that begins with the name of its kind. */
function keyOf(armored: string): Signer | null {
  const inside = armored.replace(/-----[A-Z ]+-----/g, '').replace(/\s/g, '');
  const bytes = bytesOf(inside);
  if (!bytes || new TextDecoder().decode(bytes.subarray(0, 6)) !== 'SSHSIG') return null;
  const key = stringAt(bytes, 10);
  const type = key && stringAt(key, 0);
  return key && type ? { kind: 'ssh', type: new TextDecoder().decode(type), key } : null;
}

function stringAt(bytes: Uint8Array<ArrayBuffer>, at: number): Uint8Array<ArrayBuffer> | null {
  if (at + 4 > bytes.length) return null;
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(at);
  const end = at + 4 + length;
  return length > 0 && end <= bytes.length ? bytes.slice(at + 4, end) : null;
}

function bytesOf(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    return fromBase64Url(text);
  } catch {
    return null;
  }
}

function textOf(base64: string): string | null {
  const bytes = bytesOf(base64);
  return bytes && new TextDecoder().decode(bytes);
}

function parsed(json: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(json);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
