import type { ThresholdIn } from '../../api/types';

/** What is worth a look on nearly every server. */
export const DEFAULTS: ThresholdIn[] = [
  { all: true, metric_type: 'cpu', comparison: 'gt', threshold_value: 90, clear_value: 80, duration_seconds: 300 },
  { all: true, metric_type: 'memory', comparison: 'gt', threshold_value: 90, clear_value: 85, duration_seconds: 300 },
  { all: true, metric_type: 'disk', comparison: 'gt', threshold_value: 90, clear_value: 88 },
  { all: true, metric_type: 'offline', comparison: 'gt', threshold_value: 120, severity: 'critical' },
];
