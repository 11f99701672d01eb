import type { CommandSummary } from '../../../api/types';
import { isUnderWay } from './status';

/**
 * A list and a page of it that was read later: each once, as it was read last, the newest first. An answer may have been on its
 * way for long: what has ended does not run any more.
 */
export function joined(known: CommandSummary[], page: CommandSummary[]): CommandSummary[] {
  const all = new Map(known.map((item) => [item.command_id, item]));
  for (const item of page) {
    const before = all.get(item.command_id);
    if (!before || isUnderWay(before.status) || !isUnderWay(item.status)) all.set(item.command_id, item);
  }
  // Their ids begin with their time.
  return [...all.values()].sort((a, b) => (a.command_id < b.command_id ? 1 : -1));
}
