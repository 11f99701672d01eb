// What somebody chose to see of the fleet, as the address says it.
import * as m from '#messages/status';
import type { ServerStatus } from '../../api/types';

export type View = 'cards' | 'table';
export const sortKeys = [
  'name',
  'status',
  'alerts',
  'cpu',
  'memory',
  'disk',
  'load',
  'network',
  'uptime',
  'containers',
  'seen',
] as const;
export type SortKey = (typeof sortKeys)[number];

export const statusLabels: Record<ServerStatus, () => string> = {
  online: m.online,
  offline: m.offline,
  pending: m.pending,
};

/** As they stand behind a count: `3 online`. */
export const countedStatuses: Record<ServerStatus, () => string> = {
  online: m.countedOnline,
  offline: m.countedOffline,
  pending: m.countedPending,
};

/** With more servers than these the table is what people want first. */
const MAX_CARDS = 12;

export function usualView(servers: number): View {
  return servers > MAX_CARDS ? 'table' : 'cards';
}

/** As they are listed. */
export const statuses: readonly ServerStatus[] = ['online', 'offline', 'pending'];

export interface Choice {
  view: View;
  search: string;
  status: ServerStatus | null;
  /** A server must have all of them. */
  tags: string[];
  /** Whose: the caller's own, or those that others share with them. */
  of: 'mine' | 'shared' | null;
  sort: SortKey;
  /** Against the order that is usual for it: names from Z, the least busy first. */
  isReversed: boolean;
  isGrouped: boolean;
}

/** `usual`: the view where the address names none. */
export function choiceOf(query: URLSearchParams, usual: View): Choice {
  const view = query.get('view');
  const of = query.get('of');
  return {
    view: view === 'cards' || view === 'table' ? view : usual,
    search: query.get('q') ?? '',
    status: statuses.find((status) => status === query.get('status')) ?? null,
    tags: tagsOf(query.get('tags')),
    of: of === 'mine' || of === 'shared' ? of : null,
    sort: sortKeys.find((key) => key === query.get('sort')) ?? 'name',
    isReversed: query.get('order') === 'reversed',
    isGrouped: query.get('group') === 'tag',
  };
}

/** Whether something is left out. */
export function isNarrowed(choice: Choice): boolean {
  return choice.search.trim() !== '' || choice.status !== null || choice.of !== null || choice.tags.length > 0;
}

/** What the address says of some tags. A tag may have a comma in it. */
export function written(tags: string[]): string | null {
  return tags.length ? tags.map((tag) => tag.replace(/[,%]/g, encodeURIComponent)).join(',') : null;
}

function tagsOf(text: string | null): string[] {
  if (!text) return [];
  return text.split(',').filter(Boolean).map(decoded);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
