import type { Snapshot } from '../../../api/types';
import { Rates } from '../../../charts/rates';
import type { Value } from '../../../charts/series';

/** What a server receives and sends, in bytes a second. */
export interface Flow {
  in: Value;
  out: Value;
}

/**
 * What the interfaces of a server carry together now: what came between its last two samples, each byte once. `usual` is how
 * many seconds lie between samples: it gives nothing over a gap.
 */
export function traffic(before: Snapshot, latest: Snapshot, usual: number): Flow {
  const rates = new Rates();
  const sums: Flow = { in: null, out: null };
  const counts = counted(latest);
  for (const sample of [before, latest]) {
    const at = Date.parse(sample.timestamp) / 1000;
    for (const one of sample.network) {
      if (!counts(one.interface)) continue;
      const received = rates.of(`in:${one.interface}`, one.bytes_recv, at, usual);
      const sent = rates.of(`out:${one.interface}`, one.bytes_sent, at, usual);
      if (received !== null) sums.in = (sums.in ?? 0) + received;
      if (sent !== null) sums.out = (sums.out ?? 0) + sent;
    }
  }
  return sums;
}

/** Which interfaces count: those that the agent marked, and without marks those that lie on no others by their names. */
function counted(latest: Snapshot): (name: string) => boolean {
  const marked = new Set(latest.network.filter((one) => one.in_total === true).map((one) => one.interface));
  return marked.size > 0 ? (name) => marked.has(name) : (name) => !isLayered(name);
}

function isLayered(name: string): boolean {
  const layered = /^(lo$|veth|docker|br-|br\d*$|bond|team|cni|flannel|cali|virbr|vmbr|vnet|tap|tun|wg|vxlan|ifb|dummy)/;
  return name.includes('.') || layered.test(name);
}

/** The disk that is fullest. */
export function fullest(snapshot: Snapshot): Snapshot['disk_usage'][number] | null {
  return snapshot.disk_usage.reduce<Snapshot['disk_usage'][number] | null>(
    (worst, disk) => (worst === null || disk.percent > worst.percent ? disk : worst),
    null,
  );
}
