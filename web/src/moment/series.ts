// Short charts around a time: which series they show, and how they are read.
import { api, take } from '../api/client';
import { emptyTable, tableOf, type Table } from '../charts/series';
import type { Span } from '../charts/ranges';
import { namesAsked } from '../lib/seriesNames';

/** Series of a name that are read at most: more lines cannot be told apart. */
const MOST_OF_NAME = 6;

/** The names of the series of a base name that a server has in a span; the name itself where it is a full one. */
export async function namesOf(serverId: string, metric: string, span: Span, signal?: AbortSignal): Promise<string[]> {
  if (metric.includes(':')) return [metric];
  const query = { ...rangeOf(span), q: metric, limit: 200 };
  const params = { path: { server_id: serverId }, query };
  const { names } = await take(api.GET('/api/v1/metrics/{server_id}/names', { params, ...(signal ? { signal } : {}) }));
  const own = names.map(({ name }) => name).filter((name) => name === metric || name.startsWith(`${metric}:`));
  return own.slice(0, MOST_OF_NAME);
}

/** The values of series in a span. */
export async function readTable(
  serverId: string,
  names: readonly string[],
  span: Span,
  maxPoints: number,
  signal?: AbortSignal,
): Promise<Table> {
  if (names.length === 0) return emptyTable();
  const query = { ...rangeOf(span), names: namesAsked(names), max_points: maxPoints };
  const params = { path: { server_id: serverId }, query };
  return tableOf(await take(api.GET('/api/v1/metrics/{server_id}/series', { params, ...(signal ? { signal } : {}) })));
}

function rangeOf({ from, to }: Span): { start: string; end: string } {
  return { start: new Date(from * 1000).toISOString(), end: new Date(to * 1000).toISOString() };
}
