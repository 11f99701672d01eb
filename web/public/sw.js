// Shows what the service pushes, also while no page is open. Registered when somebody turns that on (src/notices/push.ts).
//
// It answers no requests and keeps no pages: the service sends a page and its parts in one version, which an old page from a
// cache would not fit, and what it shows of servers would be out of date without saying so. The one entry of its cache is the
// id of the channel that leads to this browser.

const KEPT = 'push';
const CHANNEL = '/push-channel';

/** The addresses below this one that are no pages of the interface, and so do not know how to show another. */
const OTHERS = /^\/(help|docs|redoc|api|install)(\/|$)/;

self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));

/** What is being shown: one message after the other, so that of two that come together the later one stays. */
let showing = Promise.resolve();
self.addEventListener('push', (event) => {
  const told = read(event.data);
  showing = showing.catch(() => undefined).then(() => show(told));
  event.waitUntil(showing);
});

self.addEventListener('notificationclick', (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data?.path ?? '/alerts'));
});

self.addEventListener('pushsubscriptionchange', (event) => event.waitUntil(renew(event.newSubscription)));

/** What a message says. A browser demands a notification for each, also for one that cannot be read. */
function read(data) {
  try {
    return data?.json() ?? {};
  } catch {
    return {};
  }
}

async function show(told) {
  await Promise.allSettled([badge(told.open_alerts), putAway(told.alerts)]);
  const isNews = told.event !== 'resolved';
  await self.registration.showNotification(told.title ?? 'Signalbox', {
    body: told.text ?? '',
    // A later state of an alert takes the place of the earlier one, and of what an open page shows of it.
    tag: told.alert_id ?? (told.event === 'test' ? 'test' : 'many'),
    renotify: isNews,
    requireInteraction: isNews && told.severity === 'critical',
    icon: '/icon-192.png',
    badge: '/badge-96.png',
    data: { path: told.path ?? '/alerts' },
  });
}

/** The number of active alerts, on the icon of the installed app. */
async function badge(count) {
  if (typeof count !== 'number') return;
  await (count > 0 ? navigator.setAppBadge?.(count) : navigator.clearAppBadge?.());
}

/** Closes what is shown of these alerts: this message has their latest state. */
async function putAway(alerts) {
  if (!Array.isArray(alerts)) return;
  for (const shown of await self.registration.getNotifications()) {
    if (alerts.includes(shown.tag)) shown.close();
  }
}

/** Shows a page of the interface: in a window that is open, else in a new one. */
async function open(path) {
  const { href, origin, pathname } = new URL(path, self.location.origin);
  if (origin !== self.location.origin) return;
  const windows = await self.clients.matchAll({ type: 'window', includeUncontrolled: true });
  const pages = windows.filter((page) => !OTHERS.test(new URL(page.url).pathname));
  const page = pages.find((page) => new URL(page.url).pathname === pathname) ?? pages[0];
  if (!page) {
    await self.clients.openWindow(href);
    return;
  }
  page.postMessage({ type: 'open', path });
  await page.focus();
}

/**
 * The push service has ended the subscription, as it may at any time: makes another and tells the service. If nobody is
 * signed in any more, the next page that is opened does.
 */
async function renew(given) {
  const channel = await (await (await caches.open(KEPT)).match(CHANNEL))?.text();
  if (!channel) return;
  const told = await (await fetch('/api/v1/service')).json();
  if (!told.push_key) return;
  const subscription =
    given ??
    (await self.registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: told.push_key }));
  const token = await signIn();
  if (!token) return;
  const { endpoint, keys } = subscription.toJSON();
  const answer = await fetch(`/api/v1/notifications/channels/${channel}`, {
    method: 'PUT',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ type: 'push', settings: { endpoint, keys } }),
  });
  // Deleted, or another person's: nobody wants messages here.
  if (answer.status === 404) await subscription.unsubscribe();
}

/** An access token, by the cookie that pages share: in turn with them, as in src/session/turn.ts. */
function signIn() {
  return navigator.locks.request('session', async () => {
    const answer = await fetch('/api/v1/auth/refresh', { method: 'POST', headers: { 'X-Refresh-Cookie': '1' } });
    return answer.ok ? (await answer.json()).access_token : null;
  });
}
