// What a tab does that nobody looks at. A headless browser shows every tab, so the tests hide them by script; and the page's own
// clock is moved on, so that nobody waits for a minute.
import type { Page } from '@playwright/test';
import { enter, expect, test } from './support/test.ts';
import * as t from './support/texts.ts';

const MINUTE = 60_000;

async function setHidden(page: Page, isHidden: boolean): Promise<void> {
  await page.evaluate((isNow) => {
    Object.defineProperty(document, 'hidden', { configurable: true, value: isNow });
    Object.defineProperty(document, 'visibilityState', { configurable: true, value: isNow ? 'hidden' : 'visible' });
    document.dispatchEvent(new Event('visibilitychange'));
  }, isHidden);
}

/**
 * The sockets on which the service has said something, how many were ever opened, and the signs of life that it gave on that of alerts.
 * One that is still on its way when the clock is moved on has taken too long.
 */
function watchSockets(page: Page): { open: Set<string>; opened: number; signs: number } {
  const seen = { open: new Set<string>(), opened: 0, signs: 0 };
  page.on('websocket', (socket) => {
    const path = new URL(socket.url()).pathname.replace('/api/v1', '');
    seen.opened += 1;
    socket.on('close', () => seen.open.delete(path));
    socket.on('framereceived', ({ payload }) => {
      seen.open.add(path);
      if (path === '/ws/alerts' && String(payload).includes('"pong"')) seen.signs += 1;
    });
  });
  return seen;
}

test('a tab that is hidden for a minute rests but for its alerts, and is live again when it is seen', async ({
  page,
  account,
  site,
}) => {
  const server = await site.server(account, 'watched');
  await site.agent(account, server);
  await page.clock.install();
  const sockets = watchSockets(page);
  await enter(page, account);
  const card = page.getByRole('article');
  await expect(card.getByText(t.server.online())).toBeVisible();
  await expect.poll(() => [...sockets.open].sort()).toEqual(['/ws/alerts', '/ws/fleet']);

  await setHidden(page, true);
  await page.clock.fastForward(MINUTE + 1_000);

  await expect.poll(() => [...sockets.open]).toEqual(['/ws/alerts']);
  await site.call('PUT', `/servers/${server.id}`, account.token, { name: 'renamed' });
  // The title of the tab still counts what is wrong.
  await site.call('POST', '/alerts/thresholds', account.token, {
    server_id: server.id,
    metric_type: 'memory',
    comparison: 'gt',
    threshold_value: 0.01,
    enabled: true,
  });
  await expect(page).toHaveTitle(/^\(1\) /);
  await expect(card.getByRole('link', { name: 'watched' })).toBeVisible();

  await setHidden(page, false);

  await expect.poll(() => [...sockets.open].sort()).toEqual(['/ws/alerts', '/ws/fleet']);
  await expect(card.getByRole('link', { name: 'renamed' })).toBeVisible();
  await expect(card.getByText(t.server.online())).toBeVisible();
  await expect(card).not.toHaveClass(/stale/);
  await expect(page.getByText(t.like(t.app.lost({ duration: '{}' })))).toBeHidden();
});

test('a tab that is hidden for a moment keeps its sockets', async ({ page, account, site }) => {
  const server = await site.server(account, 'kept');
  await site.agent(account, server);
  await page.clock.install();
  const sockets = watchSockets(page);
  await enter(page, account);
  await expect(page.getByRole('article').getByText(t.server.online())).toBeVisible();
  await expect.poll(() => [...sockets.open].sort()).toEqual(['/ws/alerts', '/ws/fleet']);

  // The end of what was open before.
  await expect.poll(() => sockets.signs).toBeGreaterThan(0);
  const before = sockets.signs;
  await setHidden(page, true);
  await page.clock.fastForward(MINUTE / 2);
  await setHidden(page, false);
  // The one that was silent was asked whether it still holds.
  await expect.poll(() => sockets.signs).toBeGreaterThan(before);
  // The wait began again: this is a minute after it was hidden first.
  await setHidden(page, true);
  await page.clock.fastForward(MINUTE / 2 + 1_000);
  await setHidden(page, false);

  // The new name comes by the socket: one that was opened again has been counted by then.
  await site.call('PUT', `/servers/${server.id}`, account.token, { name: 'renamed' });
  await expect(page.getByRole('article').getByRole('link', { name: 'renamed' })).toBeVisible();
  await expect(page.getByRole('article').getByText(t.server.online())).toBeVisible();
  expect([...sockets.open].sort()).toEqual(['/ws/alerts', '/ws/fleet']);
  expect(sockets.opened).toBe(2);
});

test('the wall stays live while nobody looks at it', async ({ page, account, site }) => {
  const server = await site.server(account, 'tireless');
  await site.agent(account, server);
  await page.clock.install();
  const sockets = watchSockets(page);
  await enter(page, account, '/wall');
  const tile = page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: 'tireless' }) });
  await expect(tile).toContainText(t.server.online());
  await expect.poll(() => [...sockets.open].sort()).toEqual(['/ws/alerts', '/ws/fleet']);
  const before = sockets.opened;

  await setHidden(page, true);
  await page.clock.fastForward(2 * MINUTE);
  await site.server(account, 'newcomer');

  await expect(page.getByRole('heading', { name: 'newcomer' })).toBeVisible();
  expect(sockets.open).toContain('/ws/fleet');
  expect(sockets.opened).toBe(before);
});
