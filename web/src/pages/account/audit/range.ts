import * as m from '#messages/audit';
import { fromLocal } from '../../../lib/localtime';

/** How far back, as it stands in the address. */
export const RANGES: { name: string; label: () => string; hours: number }[] = [
  { name: '1h', label: m.lastHour, hours: 1 },
  { name: '24h', label: m.lastDay, hours: 24 },
  { name: '7d', label: m.lastWeek, hours: 168 },
  { name: '30d', label: m.lastMonth, hours: 720 },
];

export interface Span {
  since?: string;
  until?: string;
}

/** The time that a query of the address asks for: `range=24h`, or `since` and `until` as a field gives them. */
export function spanOf(query: URLSearchParams, now: number): Span {
  const range = RANGES.find((known) => known.name === query.get('range'));
  if (range) return { since: new Date(now - range.hours * 3_600_000).toISOString() };
  const span: Span = {};
  const since = fromLocal(query.get('since') ?? '');
  const until = fromLocal(query.get('until') ?? '');
  if (since) span.since = since;
  if (until) span.until = until;
  return span;
}
