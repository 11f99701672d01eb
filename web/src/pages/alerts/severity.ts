// How bad an alert is and what became of it: in a word, and as a colour.
import * as m from '#messages/severity';
import type { Alert, Severity } from '../../api/types';
import type { Tone } from '../../ui/Badge.svelte';

/** As a badge has it: `critical`. */
export const SEVERITIES: Record<Severity, () => string> = { critical: m.critical, warning: m.warning, info: m.info };

export const ALERT_STATUSES: Record<Alert['status'], () => string> = {
  active: m.active,
  acknowledged: m.acknowledged,
  resolved: m.resolved,
};

export function severityTone(severity: Severity): Tone {
  return severity === 'critical' ? 'bad' : severity === 'warning' ? 'warn' : 'accent';
}

export function statusTone(status: Alert['status']): Tone {
  return status === 'active' ? 'bad' : status === 'acknowledged' ? 'warn' : 'ok';
}
