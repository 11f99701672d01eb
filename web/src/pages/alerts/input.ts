// What a form holds of a threshold, and what the API is told of it.
import type { Metric, Severity, Threshold, ThresholdIn } from '../../api/types';
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
  target: string;
  states: string[];
  severity: Severity;
  enabled: boolean;
}

/** What is worth being told of, for a start. */
const BEGIN: Record<Metric, number> = {
  cpu: 90,
  memory: 90,
  swap: 50,
  disk: 90,
  load: 8,
  network_in: 100 * 1024 ** 2,
  network_out: 100 * 1024 ** 2,
  temperature: 85,
  offline: 120,
  container_state: 3,
};

export function fresh(scope: Scope, metric: Metric = 'cpu'): Input {
  return {
    scope,
    metric,
    comparison: 'gt',
    value: BEGIN[metric],
    clear: null,
    minutes: metric === 'offline' || metric === 'container_state' ? 0 : 5,
    target: '',
    states: [],
    severity: metric === 'offline' ? 'critical' : 'warning',
    enabled: true,
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
    target: threshold.target ?? '',
    states: [...(threshold.states ?? [])],
    severity: threshold.severity,
    enabled: threshold.enabled,
  };
}

function scopeOf(threshold: Threshold): Scope {
  if (threshold.server_id) return { kind: 'server', of: threshold.server_id };
  return threshold.tag ? { kind: 'tag', of: threshold.tag } : { kind: 'all', of: '' };
}

/** The body of a request. What the metric does not know is left out, whatever the form still holds of another one. */
export function bodyOf(input: Input): ThresholdIn {
  const { scope, metric } = input;
  const isState = metric === 'container_state';
  return {
    server_id: scope.kind === 'server' ? scope.of : null,
    tag: scope.kind === 'tag' ? scope.of.trim() : null,
    ...(scope.kind === 'all' ? { all: true } : {}),
    metric_type: metric,
    comparison: isState ? 'gte' : input.comparison,
    // An empty field is sent as what it is, so that the service's own words say what is missing.
    threshold_value: input.value as number,
    clear_value: isState || metric === 'offline' ? null : input.clear,
    duration_seconds: Math.round((input.minutes ?? 0) * 60),
    target: METRICS[metric].target && input.target.trim() ? input.target.trim() : null,
    states: isState && input.states.length ? (input.states as NonNullable<ThresholdIn['states']>) : null,
    severity: input.severity,
    enabled: input.enabled,
  };
}

/** What is wrong with where it recovers, as long as it fires at once again there. */
export function clearFault({ metric, comparison, value, clear }: Input): string | null {
  if (value === null || clear === null || metric === 'offline' || metric === 'container_state') return null;
  const isUpper = comparison === 'gt' || comparison === 'gte';
  if (isUpper ? clear <= value : clear >= value) return null;
  return `It fires ${COMPARISON_WORDS[comparison]} ${METRICS[metric].write(value)}: this must not be ${isUpper ? 'above' : 'below'} that.`;
}
