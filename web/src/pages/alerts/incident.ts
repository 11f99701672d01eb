// What an alert is about as a chart shows it, and how often it came before. Pure.
import * as m from '#messages/incident';
import type { Alert } from '../../api/types';
import { seriesColour } from '../../charts/colours';
import type { Limit, Line } from '../../charts/lines';
import type { Mark } from '../../charts/marks';
import type { Span } from '../../charts/ranges';
import type { Column, Table, Value } from '../../charts/series';
import { unitOf, type Unit } from '../../charts/units';
import { time } from '../../lib/times';
import { sourceOf } from '../server/alerts/sources';
import { isUpper } from '../server/alerts/trial';
import { severityTone } from './severity';
import { COMPARISONS, measured } from './words';

const MINUTE = 60;
const LEAST_AROUND = 15 * MINUTE;
const DAY = 86_400;
const OFTEN_DAYS = 30;
/** Orange beside the blue of the first series: charts draw lines in the colours of series. */
const FIRING = '--series-2';

export interface Subject {
  /** A series by its full name, or the base name of all that count. */
  name: string;
  unit: Unit;
  /** Its series is kept in bytes, and its threshold is a share. */
  isSwap: boolean;
}

/** Which series an alert is about; null of what has none, such as an agent that is away. */
export function subjectOf(alert: Alert): Subject | null {
  const target = alert.worst_target ?? alert.target;
  if (alert.metric_type === 'series') {
    if (!alert.series) return null;
    const name = target ? `${alert.series}:${target}` : alert.series;
    return { name, unit: unitOf(alert.unit ?? '', 'gauge'), isSwap: false };
  }
  const source = alert.metric_type === 'schedule' ? null : sourceOf(alert.metric_type);
  if (!source) return null;
  const isSwap = alert.metric_type === 'swap';
  return { name: target ? `${source.base}:${target}` : source.base, unit: isSwap ? 'percent' : source.unit, isSwap };
}

/** From when to when it fired, in seconds. */
export function firingOf(alert: Alert, now: number): Span {
  const from = time(alert.triggered_at) / 1000;
  return { from, to: alert.resolved_at ? time(alert.resolved_at) / 1000 : Math.max(now, from) };
}

/** What the chart shows: some time before, and after what is over. The condition held before it fired. */
export function aroundOf(alert: Alert, now: number): Span {
  const { from, to } = firingOf(alert, now);
  const around = Math.max(LEAST_AROUND, (to - from) / 3);
  return { from: from - alert.duration_seconds - around, to: Math.min(to + around, Math.max(now, to)) };
}

/** The part of a column within a span. */
export function within({ avg, min, max }: Column, times: readonly number[], { from, to }: Span): Column {
  const cut = (values: Value[]) =>
    values.map((value, place) => {
      const at = times[place] ?? 0;
      return at >= from && at <= to ? value : null;
    });
  return { avg: cut(avg), min: cut(min), max: cut(max) };
}

/** Each line, and once more in the colour of the alert where it fired, filled. */
export function linesOf(title: string, table: Table, names: readonly string[], firing: Span): Line[] {
  const isAlone = names.length === 1;
  return names.flatMap((name, place): Line[] => {
    const column = table.columns.get(name);
    if (!column) return [];
    const label = name.includes(':') ? name.slice(name.indexOf(':') + 1) : title;
    const whole: Line = { name, label, colour: seriesColour(place), column, hasBand: isAlone };
    if (!isAlone) return [whole];
    const fired = within(column, table.times, firing);
    return [whole, { name: `${name}:firing`, label: m.whileFiring(), colour: FIRING, column: fired, isFilled: true }];
  });
}

/** The threshold, and where it recovers. Their labels stand on the left: the newest values are on the right. */
export function limitsOf(alert: Alert): Limit[] {
  const isAbove = isUpper(alert.comparison);
  const write = (value: number) => measured(alert.metric_type, value, alert.unit);
  const limits: Limit[] = [
    {
      value: alert.threshold_value,
      label: m.limit({ comparison: COMPARISONS[alert.comparison], value: write(alert.threshold_value) }),
      tone: severityTone(alert.severity),
      shade: isAbove ? 'above' : 'below',
      side: isAbove ? 'above' : 'below',
      edge: 'left',
    },
  ];
  if (alert.clear_value != null && alert.clear_value !== alert.threshold_value)
    limits.push({
      value: alert.clear_value,
      label: m.clear({ value: write(alert.clear_value) }),
      tone: 'ok',
      side: isAbove ? 'below' : 'above',
      edge: 'left',
    });
  return limits;
}

/** When it fired and ended, with what else happened `around` it on its server. */
export function marksOf(alert: Alert, around: readonly Mark[]): Mark[] {
  const at = (moment: string) => time(moment) / 1000;
  const tone = severityTone(alert.severity);
  const own = [`alert:${alert.id}`, `resolved:${alert.id}`];
  return [
    { id: 'fired', at: at(alert.triggered_at), kind: 'alert', tone, title: m.fired() },
    ...(alert.resolved_at
      ? [{ id: 'ended', at: at(alert.resolved_at), kind: 'alert' as const, tone: 'ok' as const, title: m.ended() }]
      : []),
    ...around.filter(({ id }) => !own.includes(id)),
  ];
}

/** When the worst value was measured, while it fired; null where it is not kept. */
export function peakOf(
  alert: Alert,
  column: Column | undefined,
  times: readonly number[],
  firing: Span,
): number | null {
  const by = isUpper(alert.comparison) ? 1 : -1;
  const values = by > 0 ? column?.max : column?.min;
  let [best, at]: [number, number | null] = [-Infinity, null];
  for (const [place, value] of (values ?? []).entries()) {
    const here = times[place] ?? 0;
    if (value === null || here < firing.from || here > firing.to || value * by <= best) continue;
    [best, at] = [value * by, here];
  }
  return at;
}

/** Whether samples have become averages that are longer than the chart needs: short peaks may be missing then. */
export function isCoarse(table: Table, span: Span, points: number): boolean {
  if (table.resolution < MINUTE || table.resolution <= (3 * (span.to - span.from)) / points) return false;
  return [...table.columns.values()].some(({ min, max }) => min.some((least, place) => least !== (max[place] ?? null)));
}

export interface Before {
  /** In the 30 days before. */
  count: number;
  /** Milliseconds. */
  meanMs: number;
}

/** How often it came in the days before, and how long it lasted. */
export function before(alert: Alert, earlier: readonly Alert[]): Before {
  const since = time(alert.triggered_at) - OFTEN_DAYS * DAY * 1000;
  const lately = earlier.filter((one) => time(one.triggered_at) >= since);
  const lengths = lately.flatMap((one) => (one.resolved_at ? [time(one.resolved_at) - time(one.triggered_at)] : []));
  const sum = lengths.reduce((total, length) => total + length, 0);
  return { count: lately.length, meanMs: lengths.length > 0 ? sum / lengths.length : 0 };
}
