import type { Snapshot } from '../../../api/types';
import { newest, type Table, type Value } from '../../../charts/series';

/** What the interfaces of a server carry together. Loopback and what containers are bridged with would count it twice. */
export function traffic(table: Table): { in: Value; out: Value } {
  const sum = (base: string): Value => {
    let found: Value = null;
    for (const [name, column] of table.columns) {
      if (!name.startsWith(`${base}:`) || isInner(name.slice(base.length + 1))) continue;
      const value = newest(column);
      if (value !== null) found = (found ?? 0) + value;
    }
    return found;
  };
  return { in: sum('network_in'), out: sum('network_out') };
}

function isInner(name: string): boolean {
  return /^(lo|veth|docker|br-|cni|flannel|cali|virbr|ifb|dummy)/.test(name);
}

/** The disk that is fullest. */
export function fullest(snapshot: Snapshot): Snapshot['disk_usage'][number] | null {
  return snapshot.disk_usage.reduce<Snapshot['disk_usage'][number] | null>(
    (worst, disk) => (worst === null || disk.percent > worst.percent ? disk : worst),
    null,
  );
}
