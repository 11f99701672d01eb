// What tests of a moment have in common: a night, and what happened in it.
import type { Alert, StoredEvent } from '../api/types';

export const AT = '2026-11-21T03:12:00.000Z';
export const SECONDS = Date.parse(AT) / 1000;
/** Ten minutes before and after. */
export const AROUND = { from: SECONDS - 600, to: SECONDS + 600 };

/** An alert of the server `s1`, called db-1, that is still open. */
export function alertThen(more: Partial<Alert> = {}): Alert {
  return {
    id: 'a1',
    server_id: 's1',
    severity: 'critical',
    metric_type: 'cpu',
    comparison: 'gt',
    threshold_value: 90,
    peak_value: 97,
    message: 'CPU is 97 % on db-1',
    triggered_at: AT,
    resolved_at: null,
    ...more,
  } as Alert;
}

/** An event of the server `s1`. */
export function eventThen(id: string, kind: string, more: Partial<StoredEvent> = {}): StoredEvent {
  return { id, server_id: 's1', kind, at: AT, detail: {}, ...more };
}
