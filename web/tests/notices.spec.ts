// New alerts reach people wherever they are: beside the page, on the icon of the tab, on the app, and from the browser.
import type { Page } from '@playwright/test';
import { expectAccessible } from './support/accessible.ts';
import type { Account, ManagedServer, Site } from './support/site.ts';
import { enter, expect, navigation, test } from './support/test.ts';
import * as t from './support/texts.ts';

/** A threshold that memory crosses at once. */
function cross(site: Site, account: Account, server: ManagedServer, value: number, severity = 'warning') {
  return site.call<{ id: string }>('POST', '/alerts/thresholds', account.token, {
    server_id: server.id,
    metric_type: 'memory',
    comparison: 'gt',
    threshold_value: value,
    severity,
    enabled: true,
  });
}

/** A server with an alert that is open already, and a page that knows so: what comes after that is new. */
async function begin(page: Page, site: Site, account: Account, path = '/account'): Promise<ManagedServer> {
  const server = await site.server(account, 'noisy');
  await site.agent(account, server);
  await cross(site, account, server, 0.001, 'info');
  const open = () => site.call<object[]>('GET', `/alerts?server_id=${server.id}&status=active`, account.token);
  await site.until(async () => (await open()).length === 1, 'the alert is open');
  await enter(page, account, path);
  await expect(navigation(page).getByLabel(t.app.unacknowledged({ count: 1 }))).toBeVisible();
  return server;
}

/** The ways that notes offer. */
const ways = (page: Page, name: string) => page.getByRole('status').getByRole('link', { name, exact: true });

/**
 * A browser with notifications, whose page nobody looks at; `isOn` where somebody has turned them on before. Returns what reads
 * those since the page was loaded: each comes after the note of its alert.
 */
async function notifications(page: Page, isOn = false): Promise<() => Promise<string[]>> {
  await page.addInitScript((isTurnedOn) => {
    if (isTurnedOn) {
      sessionStorage.setItem('permission', 'granted');
      localStorage.setItem('browser-notifications', 'on');
    }
    const told: string[] = [];
    class Told {
      static permission = sessionStorage.getItem('permission') ?? 'default';
      static async requestPermission() {
        sessionStorage.setItem('permission', 'granted');
        return (Told.permission = 'granted');
      }
      close() {}
      constructor(title: string, options: { tag: string }) {
        told.push(`${options.tag}: ${title}`);
      }
    }
    Object.assign(window, { Notification: Told, told });
    document.hasFocus = () => false;
  }, isOn);
  return () => page.evaluate(() => (window as unknown as { told: string[] }).told);
}

const icon = (page: Page) => page.locator('link[rel="icon"]');

test('a new alert appears on another page, and leads to its own', async ({ page, account, site }) => {
  const server = await begin(page, site, account);

  await cross(site, account, server, 0.01, 'critical');

  const link = ways(page, t.notices.open());
  await expect(link).toBeVisible();
  await expectAccessible(page);
  await link.click();
  await expect(page).toHaveURL(/\/alerts\/[\w-]{36}$/);
  await expect(link).toBeHidden();
});

test('the icon of the tab is red while an alert is active', async ({ page, account, site }) => {
  const server = await site.server(account, 'noisy');
  await site.agent(account, server);
  await enter(page, account, '/account');
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  await expect(icon(page)).toHaveAttribute('href', '/favicon.svg');

  const { id } = await cross(site, account, server, 0.01);
  await expect(icon(page)).toHaveAttribute('href', '/favicon-alert.svg');
  await site.call('DELETE', `/alerts/thresholds/${id}`, account.token);
  await expect(icon(page)).toHaveAttribute('href', '/favicon.svg');
});

test('what was open before, and what the page shows itself, has no note', async ({ page, account, site }) => {
  const told = await notifications(page, true);
  const server = await begin(page, site, account);
  await expect(ways(page, t.notices.open())).toHaveCount(0);
  await navigation(page).getByRole('link', { name: t.app.alerts() }).click();
  await expect(page.getByRole('row', { name: /noisy/ })).toHaveCount(1);

  await cross(site, account, server, 0.02);

  await expect(page.getByRole('row', { name: /noisy/ })).toHaveCount(2);
  await expect.poll(async () => (await told()).length).toBe(1);
  await expect(ways(page, t.notices.open())).toHaveCount(0);
});

test('one that is over takes its note with it', async ({ page, account, site }) => {
  const server = await begin(page, site, account);
  const { id } = await cross(site, account, server, 0.01, 'critical');
  await expect(ways(page, t.notices.open())).toBeVisible();

  await site.call('DELETE', `/alerts/thresholds/${id}`, account.token);

  await expect(ways(page, t.notices.open())).toBeHidden();
});

test('many share a note', async ({ page, account, site }) => {
  const server = await begin(page, site, account);

  for (let index = 1; index <= 6; index += 1) await cross(site, account, server, index / 100, 'critical');

  await expect(page.getByText(t.notices.many({ count: 6 }))).toBeVisible();
  await expect(ways(page, t.notices.open())).toHaveCount(0);
  await ways(page, t.notices.openAll()).click();
  await expect(page).toHaveURL('/alerts');
});

test('an app that is installed has the number of open alerts', async ({ page, account, site }) => {
  await page.addInitScript(() => {
    Object.assign(navigator, {
      setAppBadge: async (count: number) => Object.assign(window, { badge: count }),
      clearAppBadge: async () => Object.assign(window, { badge: 0 }),
    });
  });
  const badge = () => page.evaluate(() => (window as unknown as { badge?: number }).badge);
  const server = await site.server(account, 'noisy');
  await site.agent(account, server);
  await enter(page, account);
  await expect.poll(badge).toBe(0);

  const { id } = await cross(site, account, server, 0.01);
  await expect.poll(badge).toBe(1);
  await site.call('DELETE', `/alerts/thresholds/${id}`, account.token);
  await expect.poll(badge).toBe(0);
});

test('the browser announces alerts where somebody allowed it, while they look elsewhere', async ({
  page,
  account,
  site,
}) => {
  const told = await notifications(page);
  const server = await begin(page, site, account, '/account/notifications');
  // Nobody is asked who has not asked for it.
  await expect(page.getByText(t.notices.off())).toBeVisible();
  expect(await told()).toEqual([]);

  await page.getByRole('button', { name: t.notices.turnOn() }).click();
  await expect(page.getByText(t.notices.on())).toBeVisible();
  await expect.poll(told).toEqual([`test: ${t.notices.testTitle()}`]);
  await page.goto('/run');
  await expect(navigation(page).getByLabel(t.app.unacknowledged({ count: 1 }))).toBeVisible();
  await cross(site, account, server, 0.01);
  await expect.poll(async () => (await told()).length).toBe(1);
  expect((await told())[0]).toMatch(/^[\w-]{36}: noisy: Memory above/);

  await page.goto('/account/notifications');
  await page.getByRole('button', { name: t.notices.turnOff() }).click();
  await page.reload();
  await expect(page.getByText(t.notices.off())).toBeVisible();
});

test('a browser that forbids notifications says where they are allowed', async ({ page, account }) => {
  await page.addInitScript(() => {
    Object.assign(window, {
      Notification: class {
        static permission = 'denied';
      },
    });
  });
  await enter(page, account, '/account/notifications');

  await expect(page.getByText(t.notices.denied())).toBeVisible();
  await expect(page.getByRole('button', { name: t.notices.turnOn() })).toBeHidden();
});
