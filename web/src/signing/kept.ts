// What this browser remembers of signing: what servers are called by their policies, and which keys were made here. Neither is a
// secret, and the service has neither.
import { keep, kept } from '../text/kept';
import type { Asker } from './ask';

const NAMES = 'signing-names';
const KEYS = 'signing-keys';
const MOST_NAMES = 2_000;

/** A passkey that was made here to sign. */
export interface SigningKey {
  /** Of the credential, in base64url. */
  id: string;
  /** Its line for the file of signers. */
  line: string;
  madeAt: string;
}

function read(name: string): unknown {
  try {
    return JSON.parse(kept(name) ?? 'null');
  } catch {
    return null;
  }
}

/** Names by the ids of their servers. */
export function keptNames(): ReadonlyMap<string, string> {
  const found = read(NAMES);
  const pairs = typeof found === 'object' && found !== null ? Object.entries(found) : [];
  return new Map(pairs.filter((pair): pair is [string, string] => typeof pair[1] === 'string'));
}

/** What servers are probably called: as they were before, as their agents say, or as the service calls them. */
export function namesOf(servers: readonly Asker[]): string[] {
  const known = keptNames();
  return servers.map((server) => known.get(server.id) ?? server.agent?.signing?.name ?? server.name);
}

export function keepNames(names: ReadonlyMap<string, string>): void {
  const all = new Map([...keptNames(), ...names]);
  keep(NAMES, JSON.stringify(Object.fromEntries([...all].slice(-MOST_NAMES))));
}

export function keptKeys(): SigningKey[] {
  const found = read(KEYS);
  const isKey = (one: unknown): one is SigningKey =>
    typeof one === 'object' &&
    one !== null &&
    ['id', 'line', 'madeAt'].every((name) => typeof (one as Record<string, unknown>)[name] === 'string');
  return Array.isArray(found) ? found.filter(isKey) : [];
}

export function keepKey(key: SigningKey): void {
  keep(KEYS, JSON.stringify([...keptKeys().filter((one) => one.id !== key.id), key]));
}

export function forgetKey(id: string): void {
  const left = keptKeys().filter((one) => one.id !== id);
  keep(KEYS, left.length > 0 ? JSON.stringify(left) : null);
}
