// Which servers are shown, and in which order. Pure, so that every caller gets the same.
import type { Alert, Server, ServerStatus } from '../../api/types';
import type { Reading } from '../../live/fleet.svelte';
import { statuses, type Choice, type SortKey } from './choice';

/** What filters and sorting read of a row. */
export interface Listed {
  readonly server: Server;
  readonly status: ServerStatus;
  readonly reading: Reading | null;
  readonly lastSeenAt: string | null;
}

export interface Group<T> {
  /** Null for those without one, and for all where nothing is grouped. */
  tag: string | null;
  rows: T[];
}

const SEVERITY: Record<Alert['severity'], number> = { critical: 3, warning: 2, info: 1 };
/** What needs a look comes first. */
const STATUS: Record<ServerStatus, number> = { offline: 2, pending: 1, online: 0 };

/** Whether a server fits: each word stands in its name, host, description or a tag. */
export function fits(row: Listed, choice: Pick<Choice, 'search' | 'status' | 'tags' | 'of'>): boolean {
  if (choice.status !== null && row.status !== choice.status) return false;
  if (choice.of !== null && (row.server.role === 'owner') !== (choice.of === 'mine')) return false;
  if (!choice.tags.every((tag) => row.server.tags.includes(tag))) return false;
  const words = choice.search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return true;
  const { name, host, description, tags } = row.server;
  const text = [name, host, description, ...tags].join('\n').toLowerCase();
  return words.every((word) => text.includes(word));
}

/** Sorted: what is worth a look first, then by name. What is not known, or old, comes last in either direction. */
export function sorted<T extends Listed>(
  rows: readonly T[],
  key: SortKey,
  isReversed: boolean,
  worst: (row: T) => Alert | undefined,
): T[] {
  const direction = isReversed ? -1 : 1;
  if (key === 'name') return [...rows].sort((a, b) => direction * byName(a, b));
  const values = new Map(rows.map((row) => [row, valueOf(row, key, worst(row))]));
  return [...rows].sort((a, b) => {
    const [left, right] = [values.get(a) ?? null, values.get(b) ?? null];
    if (left === right) return byName(a, b);
    if (left === null || right === null) return left === null ? 1 : -1;
    return direction * (right - left);
  });
}

function valueOf(row: Listed, key: Exclude<SortKey, 'name'>, alert: Alert | undefined): number | null {
  if (key === 'status') return STATUS[row.status];
  if (key === 'alerts') return alert ? SEVERITY[alert.severity] : 0;
  // Those that are online were all seen just now.
  if (key === 'seen') return row.status === 'online' ? Infinity : row.lastSeenAt ? Date.parse(row.lastSeenAt) : null;
  if (row.status !== 'online' || !row.reading) return null;
  const { reading } = row;
  switch (key) {
    case 'cpu':
      return reading.cpu_percent;
    case 'memory':
      return reading.memory_percent;
    case 'disk':
      return reading.disk_percent;
    case 'load':
      return reading.load_1;
    case 'uptime':
      return reading.uptime_seconds;
    case 'containers':
      return reading.containers;
    case 'network':
      if (reading.network_in === null && reading.network_out === null) return null;
      return (reading.network_in ?? 0) + (reading.network_out ?? 0);
  }
}

const names = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

/** `web-2` comes before `web-10`. Names may be the same. */
function byName(a: Listed, b: Listed): number {
  return names.compare(a.server.name, b.server.name) || (a.server.id < b.server.id ? -1 : 1);
}

/** By tag, a server under each of its own; those without one last. */
export function grouped<T extends Listed>(rows: T[]): Group<T>[] {
  const groups = new Map<string, T[]>();
  const others: T[] = [];
  for (const row of rows) {
    if (row.server.tags.length === 0) others.push(row);
    for (const tag of row.server.tags) {
      const group = groups.get(tag);
      if (group) group.push(row);
      else groups.set(tag, [row]);
    }
  }
  const found: Group<T>[] = [...groups].map(([tag, rows]) => ({ tag, rows }));
  found.sort((a, b) => names.compare(a.tag ?? '', b.tag ?? ''));
  return others.length ? [...found, { tag: null, rows: others }] : found;
}

/** The tags there are, the most used first, with how many servers have them. */
export function tagCounts(rows: readonly Listed[]): [tag: string, count: number][] {
  const counts = new Map<string, number>();
  for (const row of rows) for (const tag of row.server.tags) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1] || names.compare(a[0], b[0]));
}

/** How many servers there are of each status. */
export function statusCounts(rows: readonly Listed[]): [status: ServerStatus, count: number][] {
  return statuses.map((status) => [status, rows.filter((row) => row.status === status).length]);
}
