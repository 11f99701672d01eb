import type { Server, Threshold } from '../../../api/types';

const ORDER = { server: 0, tag: 1, all: 2 } as const;

/** By what a threshold is for a server; null where it is not. */
function reach(threshold: Threshold, server: Server): keyof typeof ORDER | null {
  if (threshold.server_id) return threshold.server_id === server.id ? 'server' : null;
  if (threshold.tag) return server.tags.includes(threshold.tag) ? 'tag' : null;
  return 'all';
}

/** The thresholds that watch a server: its own, then those of its tags, then those for all. */
export function applying(thresholds: readonly Threshold[], server: Server): Threshold[] {
  const found = thresholds.flatMap((threshold) => {
    const by = reach(threshold, server);
    return by ? [{ threshold, order: ORDER[by] }] : [];
  });
  return found.sort((one, other) => one.order - other.order).map(({ threshold }) => threshold);
}
