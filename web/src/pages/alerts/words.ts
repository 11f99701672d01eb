// Alerts and thresholds in words, the same on every page.
import type { Alert, Metric, Severity, Threshold } from '../../api/types';
import { WATCHED } from '../../charts/metrics';
import { unitOf, valueText, type Unit } from '../../charts/units';
import { duration, number, rate } from '../../lib/format';
import type { Tone } from '../../ui/Badge.svelte';

interface Known {
  label: string;
  /** What its value is measured in, as a field's label says it. */
  unit: string;
  /** How much one of that unit is. */
  scale: number;
  /** What `target` names; null where the metric has none. */
  target: string | null;
  write: (value: number) => string;
}

const MIB = 1024 ** 2;

/** A threshold of less than a percent is not one of nothing. */
const share = (value: number) => `${number(value, Math.abs(value) < 1 ? 2 : 1)} %`;

/** How a threshold of a typed metric is written. */
const WRITE: Partial<Record<Unit, Known['write']>> = {
  percent: share,
  bytes_per_second: rate,
  celsius: (value) => `${number(value, 1)} °C`,
};

/** What `target` names, by what a snapshot has several of. */
const TARGETS: Record<string, string> = { disk_usage: 'mount path', network: 'interface', temperatures: 'sensor' };

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
  offline: { label: 'Agent away', unit: 'seconds', scale: 1, target: null, write: (value) => duration(value * 1000) },
  container_state: {
    label: 'Containers',
    unit: 'deaths within five minutes',
    scale: 1,
    target: 'pattern of names',
    write: (value) => number(value, 0),
  },
  reboot: {
    label: 'Reboot',
    unit: 'seconds',
    scale: 1,
    target: null,
    write: (value) => duration(value * 1000),
  },
  series: {
    label: 'Open series',
    unit: 'in its unit',
    scale: 1,
    target: 'target of the series',
    write: (value) => number(value, 3),
  },
};

export const COMPARISONS: Record<Threshold['comparison'], string> = { gt: '>', gte: '≥', lt: '<', lte: '≤' };

export const STATES: Record<string, string> = {
  stopped: 'stopped',
  unhealthy: 'unhealthy',
  restart_loop: 'in a restart loop',
};

/** `CPU > 90 % for 5 min`, `Disk / ≥ 90 %`, `Containers web-* stopped or unhealthy`. */
export function condition(
  threshold: Pick<Threshold, 'metric_type' | 'comparison' | 'threshold_value'> &
    Partial<Pick<Threshold, 'series' | 'target' | 'duration_seconds' | 'states'>>,
): string {
  const metric = METRICS[threshold.metric_type];
  const target = threshold.target ? ` ${threshold.target}` : '';
  const held = threshold.duration_seconds ? ` for ${duration(threshold.duration_seconds * 1000)}` : '';
  if (threshold.metric_type === 'reboot') return 'Reboot';
  if (threshold.metric_type === 'offline') return `Agent away for ${metric.write(threshold.threshold_value)}${held}`;
  if (threshold.metric_type === 'container_state') {
    const states = threshold.states?.length ? threshold.states : Object.keys(STATES);
    return `Containers${target || ' of any name'} ${states.map((state) => STATES[state] ?? state).join(' or ')}${held}`;
  }
  const label = threshold.metric_type === 'series' ? (threshold.series ?? metric.label) : metric.label;
  return `${label}${target} ${COMPARISONS[threshold.comparison]} ${metric.write(threshold.threshold_value)}${held}`;
}

/** The same in a select. */
export const COMPARISON_WORDS: Record<Threshold['comparison'], string> = {
  gt: 'over',
  gte: 'at least',
  lt: 'under',
  lte: 'at most',
};

/** What an alert measured: `97.2 %`; nothing for what has no number. */
export function measured(metric: Metric, value: number, unit?: string | null): string {
  if (metric === 'series' && unit) return valueText(value, unitOf(unit, 'gauge'));
  return metric === 'container_state' || metric === 'reboot' ? '' : METRICS[metric].write(value);
}

export function severityTone(severity: Severity): Tone {
  return severity === 'critical' ? 'bad' : severity === 'warning' ? 'warn' : 'accent';
}

export function statusTone(status: Alert['status']): Tone {
  return status === 'active' ? 'bad' : status === 'acknowledged' ? 'warn' : 'ok';
}

/** What a metric is now, and how it stands to its threshold. */
export interface Present {
  text: string;
  tone: '' | 'bad' | 'faint';
}

/** For which servers a threshold is. */
export function scope(threshold: Threshold, nameOf: (id: string) => string | undefined): string {
  if (threshold.server_id) return nameOf(threshold.server_id) ?? 'a server';
  return threshold.tag ? `tag ${threshold.tag}` : 'all servers';
}

/** A value as a person says it, where the field has another unit: `2 min` for 120 seconds. */
export function readable(metric: Metric, value: number | null): string {
  if (value === null || !Number.isFinite(value)) return '';
  return (metric === 'offline' || metric === 'reboot') && value >= 60 ? METRICS.offline.write(value) : '';
}
