import type { Snapshot } from '../../../api/types';

/** Series that the charts show as they are. */
const PLAIN = new Set(['cpu_percent', 'memory_used', 'swap_used', 'load_1', 'load_5', 'load_15', 'process_count']);
/** Those of which there is one for each disk, interface, sensor. */
const EACH = ['disk_percent', 'disk_read', 'disk_write', 'network_in', 'network_out', 'temperature'];
const OF_CONTAINERS = ['container_cpu', 'container_memory'];
const CORE = 'cpu_core';
/** Series that another one says already. */
const SAID = ['memory_percent', 'disk_used', 'container_network_in', 'container_network_out'];
const OWN: ReadonlySet<string> = new Set([...PLAIN, ...EACH, ...OF_CONTAINERS, CORE, ...SAID]);

/** Whether a series has its place among the page's own charts, by the part of its name before the colon. */
export const hasPlace = (base: string) => OWN.has(base);

/** How many of a kind are read at most: a machine may have hundreds of each. */
const MOST = 24;
/** Cores are drawn thin, and are few enough to be read together. */
const MOST_CORES = 128;

const MINUTE = 60;

/**
 * From when on the names of series are asked for, for a range that begins at a time in seconds. To the minute, so that the boot
 * script, which asks before the program is here, has asked at the same address: src/boot/requests.ts.
 */
export function namesFrom(from: number): string {
  return new Date(Math.floor(from / MINUTE) * MINUTE * 1000).toISOString();
}

/** `network_in:eth0` → `['network_in', 'eth0']`. */
export function parts(name: string): [base: string, of: string] {
  const at = name.indexOf(':');
  return at < 0 ? [name, ''] : [name.slice(0, at), name.slice(at + 1)];
}

function isShown(name: string, cores: boolean): boolean {
  const [base] = parts(name);
  return PLAIN.has(base) || EACH.includes(base) || OF_CONTAINERS.includes(base) || (cores && base === CORE);
}

/** Which of the series that there are the charts need. Of many containers those that need the most memory now. */
function from(names: string[], cores: boolean, latest: Snapshot | null): string[] {
  const weight = new Map(latest?.containers.map((one) => [one.name, one.memory_bytes]));
  const byBase = new Map<string, string[]>();
  for (const name of names.filter((one) => isShown(one, cores))) {
    const [base] = parts(name);
    byBase.set(base, [...(byBase.get(base) ?? []), name]);
  }
  return [...byBase].flatMap(([base, all]) => {
    if (base === CORE) return all.slice(0, MOST_CORES);
    const weightOf = (name: string) => weight.get(parts(name)[1]) ?? -1;
    const sorted = OF_CONTAINERS.includes(base) ? all.sort((a, b) => weightOf(b) - weightOf(a)) : all;
    return sorted.slice(0, MOST);
  });
}

export const choose = { from, isShown };
