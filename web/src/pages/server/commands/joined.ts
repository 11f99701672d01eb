import type { CommandSummary } from '../../../api/types';

/** A list and a page of it that was read later: each once, as it was read last, the newest first. */
export function joined(known: CommandSummary[], page: CommandSummary[]): CommandSummary[] {
  const all = new Map(known.map((item) => [item.command_id, item]));
  for (const item of page) all.set(item.command_id, item);
  // Their ids begin with their time.
  return [...all.values()].sort((a, b) => (a.command_id < b.command_id ? 1 : -1));
}
