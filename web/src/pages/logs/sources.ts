// The logs that are shown together, as the address of the page says them, and the names by which they are told apart. Pure.
import { SERIES } from '../../charts/colours';
import { shortId } from '../../lib/format';
import { keyOf, ofKey, type Source } from '../server/logs/source';

/** More cannot be told apart, and each is a connection to the service and a stream of an agent. */
export const MOST_LOGS = 12;

export interface Chosen {
  key: string;
  serverId: string;
  source: Source;
}

/** The logs of an address: `?log=SERVER:system&log=SERVER:container:web`. What makes no sense is left aside. */
export function chosenOf(query: URLSearchParams): Chosen[] {
  const found = new Map<string, Chosen>();
  for (const text of query.getAll('log')) {
    const one = ofKey(text);
    if (!one) continue;
    const key = keyOf(one.serverId, one.source);
    if (found.size < MOST_LOGS) found.set(key, { key, ...one });
  }
  return [...found.values()];
}

/** The address that shows these logs, with all that the present one says beside them. */
export function addressWith(query: URLSearchParams, keys: readonly string[]): string {
  const next = new URLSearchParams(query);
  next.delete('log');
  for (const key of keys) next.append('log', key);
  const text = next.toString();
  return text ? `/logs?${text}` : '/logs';
}

const MOST_CHARACTERS = 22;

/** Names that tell logs apart: of the server, of the log on it, or of both where neither is enough. */
export function namesOf(
  chosen: readonly Chosen[],
  serverName: (id: string) => string,
  system: string,
): Map<string, string> {
  const servers = new Set(chosen.map((one) => one.serverId));
  const ofLog = ({ source }: Chosen) => {
    if (source.kind === 'container') return shortId(source.containerId);
    return source.kind === 'file' ? (source.path.split('/').at(-1) ?? source.path) : system;
  };
  const isOneEach = servers.size === chosen.length;
  const areAllSystem = chosen.every(({ source }) => source.kind === 'system');
  return new Map(
    chosen.map((one) => {
      const [server, log] = [serverName(one.serverId), ofLog(one)];
      if (servers.size === 1 && chosen.length > 1) return [one.key, short(log)];
      if (isOneEach && areAllSystem) return [one.key, short(server)];
      return [one.key, `${short(server, 14)}/${short(log, 14)}`];
    }),
  );
}

/** Cut in the middle: names often differ at their end. */
export function short(name: string, most = MOST_CHARACTERS): string {
  if (name.length <= most) return name;
  const end = Math.floor((most - 1) / 2);
  return `${name.slice(0, most - 1 - end)}…${name.slice(-end)}`;
}

export function colourOf(place: number): string {
  return SERIES[place % SERIES.length] ?? '--series-1';
}
