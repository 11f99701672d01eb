// Alerts and thresholds in words, the same on every page.
import * as m from '#messages/alertWords';
import type { AlertSource, Metric, Threshold } from '../../api/types';
import { WATCHED } from '../../charts/metrics';
import { unitOf, valueText, type Unit } from '../../charts/units';
import { duration, list, number, rate, shortPercent } from '../../lib/format';

interface Known {
  label: () => string;
  /** What its value is measured in, as a field's label says it. */
  unit: () => string;
  /** How much one of that unit is. */
  scale: number;
  /** What `target` names; null where the metric has none. */
  target: (() => string) | null;
  write: (value: number) => string;
}

const MIB = 1024 ** 2;

/** A threshold of less than a percent is not one of nothing. */
const share = (value: number) => shortPercent(value, Math.abs(value) < 1 ? 2 : 1);

/** How a threshold of a typed metric is written. */
const WRITE: Partial<Record<Unit, Known['write']>> = {
  percent: share,
  bytes_per_second: rate,
  celsius: (value) => `${number(value, 1)} °C`,
};

/** What `target` names, by what a snapshot has several of. */
const TARGETS: Record<string, () => string> = {
  disk_usage: m.mountPath,
  network: m.networkInterface,
  temperatures: m.sensor,
};

/** The typed metrics that thresholds may be about. */
function measuredMetrics(): Record<TypedMetric, Known> {
  const known = WATCHED.map(({ word, label, unit, counts, list }): [string, Known] => {
    const write = WRITE[unit] ?? ((value) => number(value, 2));
    const scale = unit === 'bytes_per_second' ? MIB : 1;
    return [word, { label, unit: counts, scale, target: TARGETS[list ?? ''] ?? null, write }];
  });
  return Object.fromEntries(known) as Record<TypedMetric, Known>;
}

/** Those that are rows of the service's table of metrics. */
type TypedMetric = Exclude<Metric, 'offline' | 'container_state' | 'reboot' | 'series'>;

export const METRICS: Record<Metric, Known> = {
  ...measuredMetrics(),
  offline: {
    label: m.agentOffline,
    unit: m.secondsUnit,
    scale: 1,
    target: null,
    write: (value) => duration(value * 1000),
  },
  container_state: {
    label: m.containers,
    unit: m.deathsUnit,
    scale: 1,
    target: m.namePattern,
    write: (value) => number(value, 0),
  },
  reboot: {
    label: m.reboot,
    unit: m.secondsUnit,
    scale: 1,
    target: null,
    write: (value) => duration(value * 1000),
  },
  series: {
    label: m.openSeries,
    unit: m.seriesUnit,
    scale: 1,
    target: m.seriesTarget,
    write: (value) => number(value, 3),
  },
};

export const COMPARISONS: Record<Threshold['comparison'], string> = { gt: '>', gte: '≥', lt: '<', lte: '≤' };

export const STATES: Record<string, () => string> = {
  stopped: m.stopped,
  unhealthy: m.unhealthy,
  restart_loop: m.restartLoop,
};

type Terms = Partial<Pick<Threshold, 'series' | 'target' | 'duration_seconds' | 'states'>>;

/** What an alert is about. */
export const labelOf = (source: AlertSource): string =>
  source === 'schedule' ? m.schedule() : METRICS[source].label();

/** `CPU > 90 % for 5 min`, `Disk / ≥ 90 %`, `Containers web-* stopped or unhealthy`. */
export function condition(
  threshold: { metric_type: AlertSource } & Pick<Threshold, 'comparison' | 'threshold_value'> & Terms,
): string {
  if (threshold.metric_type === 'schedule') return m.scheduleFails({ name: threshold.target ?? '' });
  if (threshold.metric_type === 'reboot') return m.reboot();
  const text = withoutDuration({ ...threshold, metric_type: threshold.metric_type });
  if (!threshold.duration_seconds) return text;
  return m.held({ condition: text, duration: duration(threshold.duration_seconds * 1000) });
}

function withoutDuration(threshold: Pick<Threshold, 'metric_type' | 'comparison' | 'threshold_value'> & Terms): string {
  const metric = METRICS[threshold.metric_type];
  if (threshold.metric_type === 'offline')
    return m.agentOfflineFor({ duration: metric.write(threshold.threshold_value) });
  if (threshold.metric_type === 'container_state') {
    const given = threshold.states?.length ? threshold.states : Object.keys(STATES);
    const states = list(
      given.map((state) => STATES[state]?.() ?? state),
      'disjunction',
    );
    return threshold.target ? m.someContainers({ pattern: threshold.target, states }) : m.anyContainer({ states });
  }
  const label = threshold.metric_type === 'series' ? (threshold.series ?? metric.label()) : metric.label();
  const value = metric.write(threshold.threshold_value);
  return [label, threshold.target, COMPARISONS[threshold.comparison], value].filter(Boolean).join(' ');
}

/** The same in a select. */
export const COMPARISON_WORDS: Record<Threshold['comparison'], () => string> = {
  gt: m.over,
  gte: m.atLeast,
  lt: m.under,
  lte: m.atMost,
};

/** What an alert measured: `97.2 %`; nothing for what has no number. */
export function measured(metric: AlertSource, value: number, unit?: string | null): string {
  if (metric === 'schedule') return '';
  if (metric === 'series' && unit) return valueText(value, unitOf(unit, 'gauge'));
  return metric === 'container_state' || metric === 'reboot' ? '' : METRICS[metric].write(value);
}

/** What a metric is now, and how it stands to its threshold. */
export interface Present {
  text: string;
  tone: '' | 'bad' | 'faint';
}

/** For which servers a threshold is. */
export function scope(threshold: Threshold, nameOf: (id: string) => string | undefined): string {
  if (threshold.server_id) return nameOf(threshold.server_id) ?? m.aServer();
  return threshold.tag ? m.ofTag({ tag: threshold.tag }) : m.allServers();
}

/** A value as a person says it, where the field has another unit: `2 min` for 120 seconds. */
export function readable(metric: Metric, value: number | null): string {
  if (value === null || !Number.isFinite(value)) return '';
  return (metric === 'offline' || metric === 'reboot') && value >= 60 ? METRICS.offline.write(value) : '';
}
