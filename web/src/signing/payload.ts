// What operators sign, as bytes: docs/guides/signed-commands.md. Pure but for the random numbers and the hash.
import { base64, base64Url } from './base64';

/** What is to be done, as the request has it. */
export type Deed =
  | { kind: 'command'; command: string; stdin: string | null; timeoutSeconds: number; repeat?: Repeat }
  | { kind: 'terminal'; timeoutSeconds: number }
  | { kind: 'container'; action: string };

/** When a command recurs that is signed once for all times. */
export interface Repeat {
  /** In UTC: agents know no other zone. */
  cron: string;
  /** The end of the schedule, where it has one. */
  until: string | null;
}

/** How long a signature holds, in minutes. The agents take a day at most. */
export const VALIDITIES = [10, 60, 24 * 60] as const;

/** The same of what recurs, for which they take 366 days. */
export const LONG_VALIDITIES = [30, 90, 180, 365].map((days) => days * 24 * 60);

/** What recurs ends so long after its signature at the latest. */
export const MOST_RECURRING_MS = 366 * 24 * 60 * 60_000;

/** Clocks differ: a signature holds from a minute ago on. */
const EARLIER_MS = 60_000;

export interface Span {
  notBefore: Date;
  expiresAt: Date;
}

export function spanFrom(now: number, minutes: number): Span {
  const notBefore = now - EARLIER_MS;
  return { notBefore: new Date(notBefore), expiresAt: new Date(notBefore + minutes * 60_000) };
}

/** As many random bits as a nonce may have at least, in hexadecimal digits. */
export function nonce(): string {
  return hexadecimal(crypto.getRandomValues(new Uint8Array(16)));
}

/**
 * The text that is signed. It ends with a line break, as files do: what is copied into one and saved by an editor is the same bytes.
 */
export async function payloadOf(deed: Deed, servers: readonly string[], span: Span, once = nonce()): Promise<string> {
  const what =
    deed.kind === 'container'
      ? { action: deed.action }
      : deed.kind === 'terminal'
        ? { timeout_seconds: deed.timeoutSeconds }
        : {
            command: deed.command,
            ...(deed.stdin === null ? {} : { stdin_sha256: hexadecimal(await sha256(deed.stdin)) }),
            timeout_seconds: deed.timeoutSeconds,
            ...(deed.repeat ? { repeat: { cron: deed.repeat.cron, time_zone: 'UTC' } } : {}),
          };
  const payload = {
    v: 1,
    servers: [...new Set(servers)],
    kind: deed.kind,
    ...what,
    not_before: span.notBefore.toISOString(),
    expires_at: span.expiresAt.toISOString(),
    nonce: once,
  };
  return `${JSON.stringify(payload, null, 2)}\n`;
}

export async function sha256(text: string): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
}

function hexadecimal(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

export type Signature =
  | { type: 'sshsig'; signature: string }
  | { type: 'webauthn'; client_data_json: string; authenticator_data: string; signature: string };

/** A payload that somebody else has written, as far as it can be read. */
export interface Written {
  command: string;
  servers: string[];
  stdinHash: string | null;
  timeoutSeconds: number;
  notBefore: string;
  expiresAt: string;
}

/** Reads the payload of a command, to be shown before it is signed; null for anything else, which nobody should sign unread. */
export function readPayload(text: string): Written | null {
  const { v, kind, command, servers, repeat, ...rest } = parsed(text);
  const { stdin_sha256: hash = null, timeout_seconds: seconds, not_before: from, expires_at: to } = rest;
  const isRead =
    v === 1 &&
    kind === 'command' &&
    repeat === undefined &&
    typeof command === 'string' &&
    Array.isArray(servers) &&
    servers.every((name) => typeof name === 'string') &&
    (hash === null || typeof hash === 'string') &&
    typeof seconds === 'number' &&
    typeof from === 'string' &&
    typeof to === 'string';
  if (!isRead) return null;
  return { command, servers, stdinHash: hash, timeoutSeconds: seconds, notBefore: from, expiresAt: to };
}

/** Whether a standard input is the one that a payload means. An empty one and none are the same. */
export async function isInput(stdin: string | null, hash: string | null): Promise<boolean> {
  const input = stdin ?? '';
  return hash === null ? input === '' : hexadecimal(await sha256(input)) === hash.toLowerCase();
}

function parsed(json: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** What requests carry. */
export interface Signed {
  payload: string;
  signatures: Signature[];
}

export function signedOf(payload: string, signatures: Signature[]): Signed {
  return { payload: base64(new TextEncoder().encode(payload)), signatures };
}

/** The most characters of it that an address takes. */
export const MOST_IN_ADDRESS = 6_000;

/** What is signed, for an address: of a terminal, whose request has no body. */
export function inAddress(signed: Signed): string {
  return base64Url(new TextEncoder().encode(JSON.stringify(signed)));
}

const SSH_SIGNATURE = /-----BEGIN SSH SIGNATURE-----[A-Za-z0-9+/=\s]+-----END SSH SIGNATURE-----/g;

/** The SSH signatures in a text that somebody pasted: one after another where several people have signed. */
export function pastedSignatures(text: string): Signature[] {
  return (text.match(SSH_SIGNATURE) ?? []).map((found) => ({ type: 'sshsig', signature: `${found}\n` }));
}
