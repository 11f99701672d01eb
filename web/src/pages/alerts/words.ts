// Alerts and thresholds in words, the same on every page.
import type { Alert, Metric, Severity, Threshold } from '../../api/types';
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

export const METRICS: Record<Metric, Known> = {
  cpu: { label: 'CPU', unit: 'percent', scale: 1, target: null, write: share },
  memory: { label: 'Memory', unit: 'percent', scale: 1, target: null, write: share },
  swap: { label: 'Swap', unit: 'percent', scale: 1, target: null, write: share },
  disk: { label: 'Disk', unit: 'percent full', scale: 1, target: 'mount path', write: share },
  load: { label: 'Load', unit: 'over one minute', scale: 1, target: null, write: (value) => number(value, 2) },
  network_in: { label: 'Network in', unit: 'MiB a second', scale: MIB, target: 'interface', write: rate },
  network_out: { label: 'Network out', unit: 'MiB a second', scale: MIB, target: 'interface', write: rate },
  temperature: {
    label: 'Temperature',
    unit: 'degrees Celsius',
    scale: 1,
    target: 'sensor',
    write: (value) => `${number(value, 1)} °C`,
  },
  offline: { label: 'Agent away', unit: 'seconds', scale: 1, target: null, write: (value) => duration(value * 1000) },
  container_state: {
    label: 'Containers',
    unit: 'deaths within five minutes',
    scale: 1,
    target: 'pattern of names',
    write: (value) => number(value, 0),
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
    Partial<Pick<Threshold, 'target' | 'duration_seconds' | 'states'>>,
): string {
  const metric = METRICS[threshold.metric_type];
  const target = threshold.target ? ` ${threshold.target}` : '';
  const held = threshold.duration_seconds ? ` for ${duration(threshold.duration_seconds * 1000)}` : '';
  if (threshold.metric_type === 'offline') return `Agent away for ${metric.write(threshold.threshold_value)}${held}`;
  if (threshold.metric_type === 'container_state') {
    const states = threshold.states?.length ? threshold.states : Object.keys(STATES);
    return `Containers${target || ' of any name'} ${states.map((state) => STATES[state] ?? state).join(' or ')}${held}`;
  }
  return `${metric.label}${target} ${COMPARISONS[threshold.comparison]} ${metric.write(threshold.threshold_value)}${held}`;
}

/** The same in a select. */
export const COMPARISON_WORDS: Record<Threshold['comparison'], string> = {
  gt: 'over',
  gte: 'at least',
  lt: 'under',
  lte: 'at most',
};

/** What an alert measured: `97.2 %`; nothing for what has no number. */
export function measured(metric: Metric, value: number): string {
  return metric === 'container_state' ? '' : METRICS[metric].write(value);
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
  return metric === 'offline' && value >= 60 ? METRICS.offline.write(value) : '';
}
