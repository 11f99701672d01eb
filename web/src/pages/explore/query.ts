// What a chart of Explore shows, as the address has it and as a view keeps it. Pure.
import type { ViewDefinition } from './types';
import { keyOf, queryOf as rangeQuery, rangeOf, type Range } from '../../charts/ranges';
import { namesRead, namesWritten } from '../../lib/seriesNames';

export const FUNCTIONS = ['avg', 'sum', 'min', 'max'] as const;
export const GROUPS = ['server', 'tag', 'series', 'none'] as const;
export const RANKS = ['max', 'mean', 'last'] as const;
export const TOPS = [3, 5, 10, 20, 50, 100] as const;

export type Fn = (typeof FUNCTIONS)[number];
export type GroupBy = (typeof GROUPS)[number];
export type Rank = (typeof RANKS)[number];

export interface Query {
  /** `base:*` stands for every target of a series. */
  series: string[];
  /** None for all. */
  servers: string[];
  tag: string | null;
  fn: Fn;
  by: GroupBy;
  top: number;
  rank: Rank;
  range: Range;
  events: boolean;
}

/** The most that the service takes. */
export const MOST_SERIES = 8;
export const MOST_SERVERS = 100;
const MOST_TOP = 100;
const USUAL_TOP = 10;

export const USUAL_RANGE: Range = { kind: 'live', seconds: 86_400 };

/** What the address says. What makes no sense is left aside. */
export function queryOf(address: URLSearchParams): Query {
  const top = Number(address.get('top'));
  return {
    series: [...new Set(address.getAll('s').flatMap(namesRead))].slice(0, MOST_SERIES),
    servers: listed(address, 'server').slice(0, MOST_SERVERS),
    tag: address.get('tag') || null,
    fn: oneOf(FUNCTIONS, address.get('fn')) ?? 'avg',
    by: oneOf(GROUPS, address.get('by')) ?? 'server',
    top: Number.isInteger(top) && top >= 1 && top <= MOST_TOP ? top : USUAL_TOP,
    rank: oneOf(RANKS, address.get('rank')) ?? 'max',
    range: rangeOf(address, USUAL_RANGE),
    events: address.get('events') !== '0',
  };
}

/** What the address is to say; for `router.set`. */
export function addressOf(query: Query): Record<string, string | null> {
  return {
    s: namesWritten(query.series) || null,
    server: query.servers.join(',') || null,
    tag: query.tag,
    fn: query.fn === 'avg' ? null : query.fn,
    by: query.by === 'server' ? null : query.by,
    top: query.top === USUAL_TOP ? null : String(query.top),
    rank: query.rank === 'max' ? null : query.rank,
    events: query.events ? null : '0',
    ...rangeQuery(query.range, USUAL_RANGE),
  };
}

/** The address of a chart. */
export function hrefOf(query: Query): string {
  const parts = Object.entries(addressOf(query)).flatMap(([name, value]) =>
    value === null ? [] : [`${name}=${encodeURIComponent(value).replaceAll('%2C', ',').replaceAll('%3A', ':')}`],
  );
  return parts.length > 0 ? `/explore?${parts.join('&')}` : '/explore';
}

/** What a view keeps of it. */
export function definitionOf(query: Query): ViewDefinition {
  const { range } = query;
  const time = (seconds: number) => new Date(seconds * 1000).toISOString();
  return {
    version: 1,
    series: query.series,
    servers: query.servers,
    tag: query.tag,
    function: query.fn,
    by: query.by,
    top: query.top,
    rank: query.rank,
    range: range.kind === 'fixed' ? null : keyOf(range.seconds),
    start: range.kind === 'fixed' ? time(range.from) : null,
    end: range.kind === 'fixed' ? time(range.to) : null,
    events: query.events,
  };
}

/** The chart that a view keeps. */
export function queryOfDefinition(given: ViewDefinition): Query {
  return {
    series: given.series,
    servers: given.servers,
    tag: given.tag,
    fn: given.function,
    by: given.by,
    top: given.top,
    rank: given.rank,
    range: rangeOfWords(given.range, given.start, given.end) ?? USUAL_RANGE,
    events: given.events,
  };
}

/** The range of a definition or a layout: up to now, or from one time to another. */
export function rangeOfWords(key: string | null, start: string | null = null, end: string | null = null): Range | null {
  const address = new URLSearchParams();
  if (key) address.set('range', key);
  if (start) address.set('from', start);
  if (end) address.set('to', end);
  const none: Range = { kind: 'live', seconds: 0 };
  const range = rangeOf(address, none);
  return range === none ? null : range;
}

/** Whether two charts ask the service the same. */
export function isSameChart(one: Query, other: Query): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function listed(address: URLSearchParams, name: string): string[] {
  const all = address.getAll(name).flatMap((text) => text.split(','));
  return [...new Set(all.map((text) => text.trim()).filter(Boolean))];
}

function oneOf<T extends string>(known: readonly T[], given: string | null): T | null {
  return known.find((one) => one === given) ?? null;
}
