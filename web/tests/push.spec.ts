// Push messages. No push service can be reached from here: `pushManager` is replaced in the page by one that subscribes to an
// address that leads nowhere, and messages are delivered to the real worker over the browser's protocol for developers. That a
// message is encrypted and arrives at a push service is tested without a browser (tests/it/notifications/push.rs).
import { createECDH } from 'node:crypto';
import type { BrowserContext, Page, Worker } from '@playwright/test';
import { hold } from './support/answer.ts';
import { expectAccessible } from './support/accessible.ts';
import type { Account, Site } from './support/site.ts';
import { WHOLE_CHROMIUM } from './support/chromium.ts';
import { enter, expect, navigation, test } from './support/test.ts';
import * as t from './support/texts.ts';

// Without a service of the desktop for notifications, the browser at first asks that one all the same which are shown, and forgets those
// that came before it has noticed: one in ten tests had none.
test.use({
  launchOptions: async ({ launchOptions }, use) => {
    const args = [...(launchOptions.args ?? []), '--disable-features=SystemNotifications'];
    await use({ ...launchOptions, executablePath: WHOLE_CHROMIUM, args });
  },
});

interface Shown {
  title: string;
  body: string;
  tag: string;
  path: string;
}

const ALERT = '019aa0b8-7d1c-7e3a-9c61-0d5f8f3f2b10';

const told = {
  id: '019aa0b8-7d1c-7e3a-9c61-0d5f8f3f2b11',
  alert_id: ALERT,
  event: 'triggered',
  severity: 'critical',
  title: '🔴 Critical: web-1',
  text: 'CPU is 97 % on web-1',
  path: `/alerts/${ALERT}`,
  alerts: [ALERT],
  open_alerts: 2,
};

/**
 * Counts in a page or a worker what it has shown. A browser that is asked which notifications there are while it shows one forgets
 * that one: it knows it already, does not show it yet, and so takes it for closed.
 */
function countShown(): void {
  const { prototype } = ServiceWorkerRegistration;
  const show = prototype.showNotification;
  const counting = Object.assign(self, { shown: 0 });
  prototype.showNotification = async function (...given) {
    await show.apply(this, given);
    counting.shown += 1;
  };
}

/** How many have been shown since it is counted. */
function shownBy(place: Pick<Page, 'evaluate'>): Promise<number> {
  return place.evaluate(() => (self as unknown as { shown: number }).shown);
}

/** Lets pages subscribe, to the address that their storage has for it. */
async function replacePushManager(context: BrowserContext): Promise<void> {
  const key = createECDH('prime256v1').generateKeys('base64url');
  await context.grantPermissions(['notifications']);
  await context.addInitScript(countShown);
  await context.addInitScript((p256dh) => {
    const subscription = () => {
      const endpoint = localStorage.getItem('test-endpoint');
      if (!endpoint) return null;
      return {
        endpoint,
        options: { applicationServerKey: null },
        toJSON: () => ({ endpoint, keys: { p256dh, auth: 'BTBZMqHH6r4Tts7J_aSIgg' } }),
        unsubscribe: async () => localStorage.removeItem('test-endpoint'),
      };
    };
    Object.assign(PushManager.prototype, {
      getSubscription: async () => subscription(),
      async subscribe({ applicationServerKey }: { applicationServerKey: Uint8Array }) {
        if (applicationServerKey.length !== 65) throw new Error('this is no key');
        if (!localStorage.getItem('test-endpoint'))
          localStorage.setItem('test-endpoint', 'https://push.invalid/secret');
        return subscription();
      },
    });
  }, key);
}

function channels(site: Site, account: Account) {
  return site.call<{ id: string; name: string; type: string; destination: string; enabled: boolean }[]>(
    'GET',
    '/notifications/channels',
    account.token,
  );
}

async function onlyChannel(site: Site, account: Account) {
  const [only, ...others] = await channels(site, account);
  if (!only || others.length) throw new Error(`there are ${others.length} other channels`);
  return only;
}

async function turnOn(page: Page, account: Account): Promise<void> {
  await replacePushManager(page.context());
  await enter(page, account, '/account/notifications');
  await page.getByRole('button', { name: t.notices.turnOn() }).click();
  await expect(page.getByText(t.notices.push())).toBeVisible();
  await expect.poll(() => shownBy(page)).toBe(1);
}

/** The notifications there are. */
function shown(page: Page): Promise<Shown[]> {
  return page.evaluate(async () => {
    const registration = await navigator.serviceWorker.ready;
    const all = await registration.getNotifications();
    return all.map(({ title, body, tag, data }) => ({ title, body, tag, path: (data as { path: string }).path }));
  });
}

interface Pushing {
  worker: Worker;
  /** Delivers a message to the worker as the browser does when its push service has one. */
  push: (message: unknown) => Promise<void>;
  /** Returns when the worker has shown so many. */
  isShown: (count: number) => Promise<void>;
}

async function pushTo(page: Page): Promise<Pushing> {
  const worker = page.context().serviceWorkers()[0];
  if (!worker) throw new Error('there is no worker');
  await worker.evaluate(countShown);

  const { origin } = new URL(page.url());
  const protocol = await page.context().newCDPSession(page);
  const registered = new Promise<string>((done) => {
    protocol.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => {
      const found = registrations.find(({ scopeURL, isDeleted }) => scopeURL === `${origin}/` && !isDeleted);
      if (found) done(found.registrationId);
    });
  });
  await protocol.send('ServiceWorker.enable');
  const registrationId = await registered;
  return {
    worker,
    async push(message) {
      const data = typeof message === 'string' ? message : JSON.stringify(message);
      await protocol.send('ServiceWorker.deliverPushMessage', { origin, registrationId, data });
    },
    isShown: (count) => expect.poll(() => shownBy(worker)).toBe(count),
  };
}

test('a browser that subscribes is a channel, until it is turned off there', async ({ page, account, site }) => {
  await turnOn(page, account);

  await expectAccessible(page);
  const made = await onlyChannel(site, account);
  expect(made).toMatchObject({ type: 'push', destination: 'push.invalid', enabled: true });
  await expect(page.getByRole('listitem').filter({ hasText: made.name })).toContainText('push.invalid');
  expect(await shown(page)).toEqual([
    { title: t.notices.testTitle(), body: t.notices.testText(), tag: 'test', path: '/account/notifications' },
  ]);

  await page.reload();
  await expect(page.getByText(t.notices.push())).toBeVisible();
  await page.getByRole('button', { name: t.notices.turnOff() }).click();
  await expect(page.getByText(t.notices.off())).toBeVisible();
  expect(await channels(site, account)).toEqual([]);
  expect(await page.evaluate(() => localStorage.getItem('test-endpoint'))).toBeNull();
});

test('a click before the service has said that it sends push messages turns them on', async ({
  page,
  account,
  site,
}) => {
  await replacePushManager(page.context());
  const answer = await hold(page, '**/api/v1/service');
  await enter(page, account, '/account/notifications');

  await page.getByRole('button', { name: t.notices.turnOn() }).click();
  answer();

  await expect(page.getByText(t.notices.push())).toBeVisible();
  expect(await channels(site, account)).toHaveLength(1);
});

test('its channel has no settings to type, but all others', async ({ page, account, site }) => {
  await turnOn(page, account);
  const { id, name } = await onlyChannel(site, account);

  await page.getByRole('button', { name: t.channels.changeTitle({ name }) }).click();
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByText(t.channels.browserText())).toBeVisible();
  await expect(dialog.getByRole('button', { name: t.channels.replace() })).toHaveCount(0);
  await dialog.getByLabel(t.channels.name(), { exact: true }).fill('My laptop');
  await dialog.getByRole('button', { name: t.channels.save() }).click();

  await expect(dialog).toBeHidden();
  await expect
    .poll(() => channels(site, account))
    .toMatchObject([{ id, name: 'My laptop', destination: 'push.invalid' }]);
});

test('a subscription that the browser has changed leads its channel to the new one', async ({
  page,
  account,
  site,
}) => {
  await turnOn(page, account);
  const { id } = await onlyChannel(site, account);

  await page.evaluate(() => localStorage.setItem('test-endpoint', 'https://other.invalid/secret'));
  await page.goto('/');

  await expect.poll(() => channels(site, account)).toMatchObject([{ id, destination: 'other.invalid' }]);
});

test('a deleted channel turns it off, and so does a sign-out', async ({ page, account, site }) => {
  await turnOn(page, account);
  const { id } = await onlyChannel(site, account);
  await site.call('DELETE', `/notifications/channels/${id}`, account.token);
  await page.reload();
  await expect(page.getByText(t.notices.off())).toBeVisible();
  expect(await page.evaluate(() => localStorage.getItem('test-endpoint'))).toBeNull();

  await page.getByRole('button', { name: t.notices.turnOn() }).click();
  await expect(page.getByText(t.notices.push())).toBeVisible();
  expect(await channels(site, account)).toHaveLength(1);
  await navigation(page).getByRole('button', { name: t.app.signOut() }).click();
  await expect(page).toHaveURL(/sign-in/);
  await expect.poll(() => channels(site, account)).toEqual([]);
});

test('the worker shows the latest state of each alert', async ({ page, account }) => {
  await turnOn(page, account);
  const { push, isShown } = await pushTo(page);
  const tags = async () => (await shown(page)).map(({ tag }) => tag).sort();

  await push(told);
  await isShown(1);
  const first = { title: told.title, body: told.text, tag: ALERT, path: told.path };
  expect(await shown(page)).toContainEqual(first);
  await push({ ...told, event: 'resolved', severity: null, title: '✅ Resolved: web-1', open_alerts: 0 });
  await isShown(2);
  expect(await shown(page)).toContainEqual({ ...first, title: '✅ Resolved: web-1' });
  expect(await tags()).toEqual([ALERT, 'test']);

  const group = { ...told, alert_id: null, event: null, title: '2 alerts', path: '/alerts', alerts: [ALERT, 'other'] };
  await push(group);
  await isShown(3);
  expect(await tags()).toEqual(['many', 'test']);
  // A browser demands that something is shown.
  await push('no JSON at all');
  await isShown(4);
  expect(await shown(page)).toContainEqual({ title: 'Signalbox', body: '', tag: 'many', path: '/alerts' });
});

test('the worker counts on the icon, and a click leads to the alert', async ({ page, account }) => {
  await turnOn(page, account);
  const { worker, push, isShown } = await pushTo(page);
  await worker.evaluate(() => {
    const counts: number[] = [];
    Object.assign(self, { counts });
    Object.assign(self.navigator, {
      setAppBadge: async (count: number) => counts.push(count),
      clearAppBadge: async () => counts.push(0),
    });
  });
  await push(told);
  const resolved = { ...told, event: 'resolved', title: '✅ Resolved: web-1', open_alerts: 0 };
  await push(resolved);
  await isShown(2);
  expect(await worker.evaluate(() => (self as unknown as { counts: number[] }).counts)).toEqual([2, 0]);
  expect((await shown(page)).map(({ title }) => title)).toContain(resolved.title);

  // What a click dispatches. Without a real one the browser refuses to bring the window to the front.
  await worker.evaluate(async (tag) => {
    const scope = self as unknown as {
      registration: ServiceWorkerRegistration;
      NotificationEvent: new (type: string, init: object) => Event;
    };
    const [notification] = await scope.registration.getNotifications({ tag });
    self.dispatchEvent(new scope.NotificationEvent('notificationclick', { notification }));
  }, ALERT);

  await expect(page).toHaveURL(`/alerts/${ALERT}`);
  await expect.poll(async () => (await shown(page)).map(({ tag }) => tag)).not.toContain(ALERT);
});

test('a browser that cannot subscribe says why, and shows alerts while a page is open', async ({ page, account }) => {
  await replacePushManager(page.context());
  await page.addInitScript(() => {
    Object.assign(PushManager.prototype, {
      subscribe: async () => {
        throw new DOMException('push service not available', 'AbortError');
      },
    });
  });
  await enter(page, account, '/account/notifications');

  await page.getByRole('button', { name: t.notices.turnOn() }).click();

  await expect(page.getByText(t.notices.on())).toBeVisible();
  await expect(page.getByText(t.notices.pushFailed({ reason: 'push service not available' }))).toBeVisible();
  await expect(page.getByRole('button', { name: t.notices.turnOnPush() })).toBeVisible();
});
