import { expect, it } from 'vitest';
import type { Snapshot } from '../../../api/types';
import { traffic } from './tiles';

function sample(timestamp: string, received: Record<string, number>): Snapshot {
  const network = Object.entries(received).map(([name, bytes]) => ({
    interface: name,
    bytes_recv: bytes,
    bytes_sent: bytes * 2,
  }));
  return { timestamp, network } as unknown as Snapshot;
}

it('tells what came between the last two samples, and counts it once', () => {
  const before = sample('2026-11-21T12:00:00Z', { eth0: 1_000, eth1: 0, veth12: 0, lo: 0 });
  const latest = sample('2026-11-21T12:00:05Z', { eth0: 6_000, eth1: 500, veth12: 90_000, lo: 90_000 });

  expect(traffic(before, latest, 5)).toEqual({ in: 1_100, out: 2_200 });
});

it('counts what the agent marked, and without marks what lies on no other interface', () => {
  const [before, latest] = [0, 5_000].map((bytes, second) => {
    const all = { bond0: bytes, eth0: bytes, 'eth0.7': bytes, wg0: bytes };
    return sample(`2026-11-21T12:00:0${second * 5}Z`, all);
  }) as [Snapshot, Snapshot];

  expect(traffic(before, latest, 5).in).toBe(1_000);
  latest.network.forEach((one) => (one.in_total = one.interface === 'bond0' || one.interface === 'wg0'));
  expect(traffic(before, latest, 5).in).toBe(2_000);
});

it('tells nothing over a gap, and nothing of a counter that began again', () => {
  const before = sample('2026-11-21T12:00:00Z', { eth0: 1_000 });

  expect(traffic(before, sample('2026-11-21T12:10:00Z', { eth0: 6_000 }), 5)).toEqual({ in: null, out: null });
  expect(traffic(before, sample('2026-11-21T12:00:05Z', { eth0: 10 }), 5)).toEqual({ in: null, out: null });
});
