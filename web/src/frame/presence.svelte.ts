// What is wrong, for people who look at another tab or have the interface as an app: the icon of the tab, and a number on the app's.
import { alerts } from '../live/alerts.svelte';
import { Newcomers } from '../notices/newcomers';
import { loadPart } from '../router/loading';
import { session } from '../session/session.svelte';
import { kept } from '../text/kept';

/** Badges of apps are known to some browsers alone. */
type Badged = Navigator & { setAppBadge?: (count: number) => Promise<void>; clearAppBadge?: () => Promise<void> };

/** Shows how many alerts nobody has acknowledged. */
export function showCount(count: number): void {
  const icon = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
  if (icon) icon.href = count > 0 ? '/favicon-alert.svg' : '/favicon.svg';
  const badged = navigator as Badged;
  // A browser that may not, because nobody installed it, says so.
  (count > 0 ? badged.setAppBadge?.(count) : badged.clearAppBadge?.())?.catch(() => undefined);
}

/** Does what a page owes the push messages of its browser, where somebody turned them on. */
export function keepPushed(): void {
  if (kept('push') === null) return;
  const load = () => loadPart(() => import('../notices/push'));
  const part = load();
  // Somebody may sign out before it has come, or long after it did not.
  session.beforeSignOut(async () => (await part.catch(load)).unsubscribe());
  // What does not work now is done by the next page.
  part.then(({ keepUp }) => keepUp()).catch(() => undefined);
}

/** Announces alerts that come while the page is there. Call it when its part of the page begins. */
export function tellOfAlerts(): void {
  const newcomers = new Newcomers();
  let isLoaded = false;
  $effect(() => {
    if (!alerts.isKnown) return;
    const open = alerts.unresolved;
    const fresh = newcomers.take(open);
    if (fresh.length === 0 && !isLoaded) return;
    isLoaded = true;
    // Without it, as when the service is away, the badge and the title still say it.
    loadPart(() => import('../notices/announce')).then(
      ({ announce }) => announce(fresh, open),
      () => undefined,
    );
  });
}
