// Announces new alerts: beside the page, and where somebody wants that, outside of the browser's window. Loaded with the first.
import * as m from '#messages/notices';
import type { Alert } from '../api/types';
import { alerts } from '../live/alerts.svelte';
import { fleet } from '../live/fleet.svelte';
import { titleOf } from '../pages/alerts/sentence';
import { router } from '../router/router.svelte';
import { toasts } from '../ui/toasts.svelte';
import { isShownAt } from './newcomers';
import { desktop } from './desktop.svelte';

/** More than this at a time share a note. */
const MOST = 3;
/** How long one is shown. What is critical stays until somebody puts it away, or it is over. */
const SHOWN_MS = 12_000;
/** An alert waits so long for the name of its server: without it, it is better than none. */
const NAMES_MS = 3_000;

/** The notes that are shown, by the id of their alert. */
const shown = new Map<string, number>();
let group: { toast: number; count: number } | null = null;

/** Announces alerts that are new, and puts away what is over. `open` are all that are open. */
export async function announce(fresh: readonly Alert[], open: readonly Alert[]): Promise<void> {
  if (!fleet.isKnown) {
    await Promise.race([fleet.load(), new Promise((done) => setTimeout(done, NAMES_MS))]);
    // Somebody has signed out by now.
    if (!alerts.isKnown) return;
  }
  const ids = new Set(open.map(({ id }) => id));
  for (const [id, toast] of shown) {
    const isThere = toasts.shown.some((each) => each.id === toast);
    if (isThere && ids.has(id)) continue;
    toasts.close(toast);
    shown.delete(id);
  }
  const unseen = fresh.filter((alert) => !isShownAt(router.path, alert));
  if (unseen.length > 0) tell(unseen);
  if (fresh.length > 0) desktop.announce(fresh);
}

function tell(unseen: readonly Alert[]): void {
  const waiting = group && toasts.shown.some((each) => each.id === group?.toast) ? group : null;
  if (!waiting && unseen.length + shown.size <= MOST) {
    for (const alert of unseen) {
      const toast = toasts.add({
        kind: alert.severity,
        icon: 'bell',
        text: titleOf(alert, fleet.row(alert.server_id)?.server.name),
        way: { text: m.open(), href: `/alerts/${alert.id}` },
        shownMs: alert.severity === 'critical' ? null : SHOWN_MS,
      });
      shown.set(alert.id, toast);
    }
    return;
  }
  // Too many for one note each: one note has their number.
  const count = unseen.length + shown.size + (waiting?.count ?? 0);
  if (waiting) toasts.close(waiting.toast);
  for (const toast of shown.values()) toasts.close(toast);
  shown.clear();
  const toast = toasts.add({
    kind: unseen.some((alert) => alert.severity === 'critical') ? 'critical' : 'warning',
    icon: 'bell',
    text: m.many({ count }),
    way: { text: m.openAll(), href: '/alerts' },
    shownMs: SHOWN_MS,
  });
  group = { toast, count };
}
