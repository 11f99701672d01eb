// From a chart to an alert rule: what the rule is about, and a value that the chart's history suggests. Pure.
import type { Metric } from '../../../api/types';
import { namesWritten } from '../../../lib/seriesNames';
import type { ChartOf } from './charts';

/** What an alert rule of a chart watches. */
export interface Watch {
  metric: Metric;
  /** The series that it reads: the worst of them counts. */
  names: string[];
  target: string | null;
  /** The name of an open series. */
  series: string | null;
}

/** How far back a suggestion looks. */
export const SUGGESTION_DAYS = 7;

/** What can be watched of a chart; null where no rule is about it. */
export function watchOf({ key, lines, chosen }: Pick<ChartOf, 'key' | 'lines' | 'chosen'>): Watch | null {
  const of = (metric: Metric, names: string[], target: string | null = null): Watch => ({
    metric,
    names,
    target,
    series: null,
  });
  const all = lines.filter((line) => !line.isFaint).map((line) => line.name);
  if (all.length === 0) return null;
  switch (key) {
    case 'cpu':
      return of('cpu', ['cpu_percent']);
    case 'memory':
      return of('memory', ['memory_percent']);
    case 'load':
      return of('load', ['load_1']);
    case 'network':
      return chosen === null ? null : of('network_in', [`network_in:${chosen}`], chosen);
    case 'disks':
      return of('disk', all);
    case 'temperatures':
      return of('temperature', all);
    default:
      return null;
  }
}

/** Metrics of rules, by the part of a series' name before the colon. */
const OF_SERIES: Record<string, Metric> = {
  cpu_percent: 'cpu',
  memory_percent: 'memory',
  load_1: 'load',
  disk_percent: 'disk',
  temperature: 'temperature',
  network_in: 'network_in',
  network_out: 'network_out',
};

/** What can be watched of series that are shown together; null where they are of several kinds, or no rule is about them. */
export function watchOfSeries(names: readonly string[]): Watch | null {
  const bases = [...new Set(names.map((name) => name.split(':', 1)[0] ?? ''))];
  const metric = bases.length === 1 ? OF_SERIES[bases[0] ?? ''] : undefined;
  if (!metric) return null;
  const [only = ''] = names;
  const target = names.length === 1 && only.includes(':') ? only.slice(only.indexOf(':') + 1) : null;
  if (metric.startsWith('network') && target === null) return null;
  return { metric, names: [...names], target: target === '*' ? null : target, series: null };
}

/** What an address says of a suggestion. */
export interface Suggested {
  value: number;
  usual: number;
  target: string;
  series: string;
}

/** The keys of an address that `suggestedOf` reads, all empty: for `router.set`. */
export const NOT_SUGGESTED = { value: null, usual: null, target: null, series: null };

/** Where a rule is made: `/servers/…/alerts?new=cpu&value=92&usual=83`. Without a suggestion it begins with the usual value. */
export function ruleAddress(page: string, watch: Watch, found: { value: number; usual: number } | null): string {
  const query = new URLSearchParams({ new: watch.metric });
  if (watch.target !== null) query.set('target', watch.target);
  if (watch.series !== null) query.set('series', watch.series);
  if (found) {
    query.set('value', String(found.value));
    query.set('usual', String(found.usual));
  }
  return `${page}?${query}`;
}

/** The suggestion of an address; null where there is none. */
export function suggestedOf(query: URLSearchParams): Suggested | null {
  const [value, usual] = [Number(query.get('value') ?? NaN), Number(query.get('usual') ?? NaN)];
  if (!Number.isFinite(value) || !Number.isFinite(usual)) return null;
  return { value, usual, ...targetOf(query) };
}

/** What a rule of an address is about, beside its metric. */
export function targetOf(query: URLSearchParams): { target: string; series: string } {
  return { target: query.get('target') ?? '', series: query.get('series') ?? '' };
}

/** The page that shows these series of a server beside others. */
export function exploreAddress(server: string, names: readonly string[], range: Record<string, string | null>): string {
  const query = new URLSearchParams({ server });
  for (const name of names) query.append('s', namesWritten([name]));
  for (const [key, value] of Object.entries(range)) if (value !== null) query.set(key, value);
  return `/explore?${query}`;
}
