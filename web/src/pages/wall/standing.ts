// How a server stands, in one word: what a wall shows from afar.
import * as m from '#messages/wall';
import type { Alert, ServerStatus } from '../../api/types';
import { sentenceOf } from '../alerts/sentence';

export type Standing = 'offline' | 'critical' | 'silent' | 'warning' | 'pending' | 'returning' | 'fine';

/** The worst first. A server that never was there is not in trouble. */
const TROUBLES: readonly Standing[] = ['offline', 'critical', 'silent', 'warning'];

/** `isReturning`: it is not connected, but the service has only just started. */
export function standing(
  status: ServerStatus,
  isStale: boolean,
  alerts: readonly Alert[],
  isReturning: boolean,
): Standing {
  if (status === 'pending') return 'pending';
  if (status === 'offline') return isReturning ? 'returning' : 'offline';
  const worst = alerts[0]?.severity;
  if (worst === 'critical') return 'critical';
  if (isStale) return 'silent';
  return worst === 'warning' ? 'warning' : 'fine';
}

/** Where it stands among those in trouble; null for those that are not. */
export function rank(standing: Standing): number | null {
  const place = TROUBLES.indexOf(standing);
  return place < 0 ? null : place;
}

/** Why it needs a look, at `now` in milliseconds. */
export function reason(standing: Standing, alerts: readonly Alert[], now: number): string {
  switch (standing) {
    case 'offline':
      return m.offline();
    case 'silent':
      return m.noData();
    case 'critical':
    case 'warning': {
      const same = alerts.filter((alert) => alert.severity === standing);
      const [only] = same;
      if (only && same.length === 1) return sentenceOf(only, now);
      return (standing === 'critical' ? m.criticalAlerts : m.warningAlerts)({ count: same.length });
    }
    case 'pending':
      return m.pending();
    case 'returning':
      return m.returning();
    case 'fine':
      return '';
  }
}
