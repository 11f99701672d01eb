// What a form holds of a threshold, and what it sends to the API.
import * as m from '#messages/thresholds';
import type { Metric, Severity, Threshold, ThresholdIn } from '../../api/types';
import { WATCHED } from '../../charts/metrics';
import { COMPARISON_WORDS, METRICS } from './words';

/** For which servers it is. `of` is the server's id, or the tag. */
export interface Scope {
  kind: 'server' | 'tag' | 'all';
  of: string;
}

export interface Input {
  scope: Scope;
  metric: Metric;
  comparison: Threshold['comparison'];
  /** Null while a field is empty: what the browser gives for an empty number. */
  value: number | null;
  clear: number | null;
  minutes: number | null;
  /** The name of an open series. */
  series: string;
  target: string;
  states: string[];
  severity: Severity;
}

/** The value that a new threshold begins with. */
const BEGIN: Partial<Record<Metric, number>> = { offline: 120, container_state: 3, reboot: 300 };

function begin(metric: Metric): number {
  return BEGIN[metric] ?? WATCHED.find((watched) => watched.word === metric)?.usual ?? 1;
}

/** What is true or not at a moment: it is not compared, and recovers on its own. */
export const isEventful = (metric: Metric) => metric === 'container_state' || metric === 'reboot';

export function fresh(scope: Scope, metric: Metric = 'cpu'): Input {
  return {
    scope,
    metric,
    comparison: 'gt',
    value: begin(metric),
    clear: null,
    minutes: metric === 'offline' || isEventful(metric) ? 0 : 5,
    series: '',
    target: '',
    states: [],
    severity: metric === 'offline' ? 'critical' : 'warning',
  };
}

export function inputOf(threshold: Threshold): Input {
  return {
    scope: scopeOf(threshold),
    metric: threshold.metric_type,
    comparison: threshold.comparison,
    value: threshold.threshold_value,
    clear: threshold.clear_value ?? null,
    minutes: threshold.duration_seconds / 60,
    series: threshold.series ?? '',
    target: threshold.target ?? '',
    states: [...(threshold.states ?? [])],
    severity: threshold.severity,
  };
}

function scopeOf(threshold: Threshold): Scope {
  if (threshold.server_id) return { kind: 'server', of: threshold.server_id };
  return threshold.tag ? { kind: 'tag', of: threshold.tag } : { kind: 'all', of: '' };
}

/**
 * The body of a request. What the metric does not know is left out, whatever the form still holds of another one. So is the switch: a
 * new one is on, and somebody may have turned that of another one in the list since the form was opened.
 */
export function bodyOf(input: Input): ThresholdIn {
  const { scope, metric } = input;
  const isState = metric === 'container_state';
  return {
    server_id: scope.kind === 'server' ? scope.of : null,
    tag: scope.kind === 'tag' ? scope.of.trim() : null,
    ...(scope.kind === 'all' ? { all: true } : {}),
    metric_type: metric,
    series: metric === 'series' ? input.series.trim() : null,
    comparison: isEventful(metric) ? 'gte' : input.comparison,
    // An empty field is sent as what it is, so that the service's own words say what is missing.
    threshold_value: input.value as number,
    clear_value: isEventful(metric) || metric === 'offline' ? null : input.clear,
    duration_seconds: metric === 'reboot' ? 0 : Math.round((input.minutes ?? 0) * 60),
    target: METRICS[metric].target && input.target.trim() ? input.target.trim() : null,
    states: isState && input.states.length ? (input.states as NonNullable<ThresholdIn['states']>) : null,
    severity: input.severity,
  };
}

/** What is wrong with where it recovers, as long as it fires at once again there. */
export function clearFault({ metric, comparison, value, clear }: Input): string | null {
  if (value === null || clear === null || metric === 'offline' || isEventful(metric)) return null;
  const isUpper = comparison === 'gt' || comparison === 'gte';
  if (isUpper ? clear <= value : clear >= value) return null;
  const values = { comparison: COMPARISON_WORDS[comparison](), value: METRICS[metric].write(value) };
  return isUpper ? m.clearAbove(values) : m.clearBelow(values);
}
