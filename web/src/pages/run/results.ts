import * as m from '#messages/run';
import { reasonOf, type Reason } from '../../signing/refusals';
import type { Batch, BatchResult, CommandStatus } from '../../api/types';

/** Bytes of output that a batch shows of each server. */
const PREVIEW_BYTES = 4096;

export type Filter = 'all' | 'running' | 'succeeded' | 'failed' | 'waiting' | 'stopped';

export const filters: { filter: Filter; label: () => string; statuses: CommandStatus[] }[] = [
  { filter: 'all', label: m.filterAll, statuses: [] },
  { filter: 'failed', label: m.filterFailed, statuses: ['failed', 'timed_out', 'lost'] },
  { filter: 'succeeded', label: m.filterSucceeded, statuses: ['succeeded'] },
  { filter: 'running', label: m.filterRunning, statuses: ['running'] },
  { filter: 'waiting', label: m.filterWaiting, statuses: ['queued'] },
  { filter: 'stopped', label: m.filterStopped, statuses: ['cancelled', 'skipped'] },
];

export function filterOf(text: string | null): Filter {
  return filters.find((one) => one.filter === text)?.filter ?? 'all';
}

export function filtered(results: BatchResult[], filter: Filter): BatchResult[] {
  const statuses = filters.find((one) => one.filter === filter)?.statuses ?? [];
  return statuses.length ? results.filter((result) => statuses.includes(result.status)) : results;
}

export function countOf(counts: Batch['counts'], filter: Filter): number {
  const statuses = filters.find((one) => one.filter === filter)?.statuses ?? [];
  const wanted: CommandStatus[] = statuses.length ? statuses : (Object.keys(counts) as CommandStatus[]);
  return wanted.reduce((sum, status) => sum + counts[status], 0);
}

/** What a row shows of an output: its last line, or its first one where the end is not known here. */
export function lineOf(preview: string): { text: string; isFirst: boolean } {
  const isCut = new TextEncoder().encode(preview).length > PREVIEW_BYTES - 4;
  const lines = preview.split('\n').filter((line) => line.trim() !== '');
  return { text: (isCut ? lines[0] : lines[lines.length - 1]) ?? '', isFirst: isCut };
}

export interface Group {
  key: string;
  status: CommandStatus;
  exitCode: number | null;
  /** What all of them said, or why nothing was run. */
  text: string;
  isError: boolean;
  /** Why signatures did not suffice, where that was the error. */
  reason: Reason | null;
  /** The outputs may differ after what is known here. */
  isCut: boolean;
  results: BatchResult[];
}

/** Servers that came to the same: the same end, the same output. The most servers first. */
export function grouped(results: BatchResult[]): Group[] {
  const groups = new Map<string, Group>();
  for (const result of results) {
    const text = result.error?.detail ?? result.preview;
    const exitCode = result.exit_code ?? null;
    const key = JSON.stringify([result.status, exitCode, result.error?.code ?? null, text]);
    const known = groups.get(key);
    if (known) {
      known.results.push(result);
      continue;
    }
    const isError = Boolean(result.error);
    const isCut = !isError && lineOf(text).isFirst;
    const reason = reasonOf(result.error);
    groups.set(key, { key, status: result.status, exitCode, text, isError, reason, isCut, results: [result] });
  }
  return [...groups.values()].sort((a, b) => b.results.length - a.results.length);
}

/** The newer results, with the objects of the older ones where nothing changed: what did not change is not drawn again. */
export function kept(older: BatchResult[], newer: BatchResult[]): BatchResult[] {
  const known = new Map(older.map((result) => [result.command_id, result]));
  return newer.map((result) => {
    const before = known.get(result.command_id);
    return before?.status === result.status && before.finished_at === result.finished_at ? before : result;
  });
}

/** Whether an agent's policy refused, which a line on its server changes. One that runs commands for others refuses a person. */
export function isOfPolicy(result: BatchResult, capabilities: readonly string[] | undefined): boolean {
  return result.error?.code === 'agent_refused' && !capabilities?.includes('commands');
}

/** Those that it did not succeed on: to be run again. */
export function unfinished(results: BatchResult[]): BatchResult[] {
  return results.filter((result) => ['failed', 'timed_out', 'lost', 'cancelled', 'skipped'].includes(result.status));
}
