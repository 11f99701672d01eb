// Which alerts are new, and which of them somebody sees already.
import type { Alert } from '../api/types';

/** Alerts by their ids, as they come: what was open when the page was loaded is no news. */
export class Newcomers {
  #known: Set<string> | null = null;

  /** Takes all that are open. Returns those that were not open before, and that nobody has seen to yet. */
  take(open: readonly Alert[]): Alert[] {
    const before = this.#known;
    this.#known = new Set(open.map((alert) => alert.id));
    if (!before) return [];
    return open.filter((alert) => !before.has(alert.id) && alert.status === 'active' && !alert.silenced);
  }
}

/** Whether the page at an address shows a new alert by itself. */
export function isShownAt(path: string, alert: Pick<Alert, 'id' | 'server_id'>): boolean {
  if (path === '/' || path === '/servers' || path === '/alerts') return true;
  return path === `/alerts/${alert.id}` || path === `/servers/${alert.server_id}/alerts`;
}
