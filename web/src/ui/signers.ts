// Whose signatures count, as options of install.sh. The line is for root on the server: nothing here reaches the service. Pure.
import { readSshKey } from '../signing/signer';
import { quoted } from './install';

/** Why a value is none for `--signers`, or for `--release-signers`. */
export type SignersFault = 'private' | 'insecure' | 'own' | 'address' | 'unnamed' | 'form' | 'passkey';

/** What they sign: passkeys sign no releases, which are files. */
export type SignedKind = 'commands' | 'releases';

export interface Signers {
  /** The values, one for each line. */
  values: string[];
  /** The first fault, with its line. */
  fault: { line: number; kind: SignersFault } | null;
}

/** Reads one key or address a line. `service` is the address of the service, whose lists install.sh refuses. */
export function readSigners(text: string, service: string, of: SignedKind = 'commands'): Signers {
  const signers: Signers = { values: [], fault: null };
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const value = line.trim();
    if (value === '' || value.startsWith('#')) continue;
    const kind = faultOf(value, service) ?? (of === 'releases' && isPasskey(value) ? 'passkey' : null);
    if (kind === null) signers.values.push(value);
    else signers.fault ??= { line: index + 1, kind };
  }
  return signers;
}

function faultOf(value: string, service: string): SignersFault | null {
  if (/PRIVATE KEY|^PuTTY-User-Key-File/.test(value)) return 'private';
  // Some characters show a line in another order than it has, or not at all: what is pasted has to be what is read.
  if (/[^\x20-\x7e\t]/.test(value)) return 'form';
  const named = /^([A-Za-z0-9._@+-]+)=(.+)$/.exec(value);
  const rest = named?.[2] ?? value;
  if (!/\s/.test(rest)) return rest.includes('://') ? addressFault(rest, service) : 'form';
  return keyFault(rest.split(/\s+/), named !== null);
}

/** As install.sh has it: no user, no other characters, and never the service itself. */
function addressFault(address: string, service: string): SignersFault | null {
  if (!/^[\][A-Za-z0-9._~%:/?=&,+-]+$/.test(address) || !URL.canParse(address)) return 'address';
  const { protocol, hostname } = new URL(address);
  if (protocol !== 'https:') return 'insecure';
  const host = (name: string) => name.toLowerCase().replace(/\.$/, '');
  return URL.canParse(service) && host(new URL(service).hostname) === host(hostname) ? 'own' : null;
}

/** A name as install.sh has it. */
function isName(word: string): boolean {
  return /^[A-Za-z0-9._@+-]+$/.test(word);
}

/** `ssh-ed25519 AAAA... ada`, `ada ssh-ed25519 AAAA...`, or a passkey `ada sk-webauthn KEY HOST`. */
function keyFault(words: string[], isNamed: boolean): SignersFault | null {
  const [first = '', second = '', third = '', ...more] = words;
  if (readSshKey(`${first} ${second}`)) {
    if (isNamed || (more.length === 0 && isName(third))) return null;
    return 'unnamed';
  }
  if (first === 'sk-webauthn') return isNamed ? passkeyFault(second, third, more) : 'unnamed';
  if (!isName(first) || isNamed) return 'form';
  if (second === 'sk-webauthn') return passkeyFault(third, more[0] ?? '', more.slice(1));
  return readSshKey(`${second} ${third}`) ? null : 'form';
}

function passkeyFault(key: string, host: string, more: string[]): SignersFault | null {
  const isTouched = more.length === 0 || (more.length === 1 && more[0] === 'touch');
  return /^[A-Za-z0-9_-]{40,1400}$/.test(key) && /^[A-Za-z0-9.-]+$/.test(host) && isTouched ? null : 'form';
}

/** Of what `faultOf` finds no fault with. */
function isPasskey(value: string): boolean {
  return /(^|[\s=])sk-webauthn\s/.test(value);
}

/** The options that name them. */
export function signersOptions(values: readonly string[]): string[] {
  return values.map((value) => `--signers ${quoted(value)}`);
}

/** The options with which an agent takes updates that one of them has signed. Nothing without signers. */
export function updatesOptions(values: readonly string[]): string[] {
  if (values.length === 0) return [];
  return ['--updates signed', ...values.map((value) => `--release-signers ${quoted(value)}`)];
}
