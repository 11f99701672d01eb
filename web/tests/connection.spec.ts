import type { Page } from '@playwright/test';
import { answerTo } from './support/answer.ts';
import { expectNothingGreen, greens } from './support/greens.ts';
import { BACK, enter, expect, forgive, navigation, tab, test } from './support/test.ts';
import * as t from './support/texts.ts';

/** What browsers write to the console when a socket, or a file of the page, finds nobody. */
const UNREACHED =
  /^WebSocket connection to .* failed|^Firefox can.t establish a connection|^Loading (module from|failed for the module)/;

const lost = (page: Page) => page.getByText(t.like(t.app.lost({ duration: '{}' })));

for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
  test(`a service that ends by ${signal} is missed and found again by the page itself`, async ({
    page,
    alone,
    faults,
  }) => {
    test.slow();
    const account = await alone.account();
    const server = await alone.server(account, 'steady');
    await alone.agent(account, server);
    await enter(page, account, `${alone.origin}/`);
    const card = page.getByRole('article').filter({ hasText: 'steady' });
    await expect(card.getByText(t.server.online())).toBeVisible();
    await expect(card).not.toHaveClass(/stale/);
    // Something was measured: only that has an age.
    await expect(card).toContainText(/\d\s?%/);
    const ofServer = await page.context().newPage();
    await ofServer.goto(`${alone.origin}/servers/${server.id}`);
    await expect(ofServer.getByText(t.server.online(), { exact: true })).toBeVisible();
    await expect.poll(() => greens(page)).not.toEqual([]);
    await expect.poll(() => greens(ofServer)).not.toEqual([]);
    await page.evaluate(() => Object.assign(window, { isSamePage: true }));
    await ofServer.evaluate(() => Object.assign(window, { isSamePage: true }));

    await alone.stopService(signal);

    // It says so, and nothing that it shows passes for the present.
    await expect(lost(page)).toBeVisible();
    await expect(card).toHaveClass(/stale/);
    // A service that shuts down in order may have reported before that its agent went.
    await expect(
      card.getByText(t.like(t.fleet.asOf({ ago: '{}' }))).or(card.getByText(t.plain(t.fleet.lastSeen()))),
    ).toBeVisible();
    await expectNothingGreen(page);
    await expect(lost(ofServer)).toBeVisible();
    await expect(ofServer.getByText(t.server.stale())).toBeVisible();
    await expectNothingGreen(ofServer);

    await alone.startService();

    await expect(lost(page)).toBeHidden(BACK);
    // It is stale until its agent is back.
    await expect(card).not.toHaveClass(/stale/, BACK);
    await expect(card.getByText(t.server.online())).toBeVisible(BACK);
    await expect(lost(ofServer)).toBeHidden(BACK);
    await expect(ofServer.getByText(t.server.online(), { exact: true })).toBeVisible();
    // Everything works again: the page reads from the service, and nobody reloaded it.
    await tab(ofServer, t.server.keys()).click();
    await expect(ofServer.getByRole('cell', { name: 'steady', exact: true })).toBeVisible();
    for (const one of [page, ofServer]) expect(await one.evaluate(() => 'isSamePage' in window)).toBe(true);
    forgive(faults, UNREACHED);
  });
}

test('a page that is opened while the service is away waits for it', async ({ page, alone, faults }) => {
  const account = await alone.account();
  await alone.server(account, 'steady');
  await enter(page, account, `${alone.origin}/`);
  await expect(page.getByRole('link', { name: 'steady' })).toBeVisible();

  // The page itself is in the browser; what it asks is not answered.
  await page.route('**/api/**', (route) => route.abort());
  await page.reload();
  await expect(page.getByRole('heading', { name: t.app.unreachable() })).toBeVisible();
  // It keeps the focus when it has tried again on its own.
  const tryNow = page.getByRole('button', { name: t.app.tryNow() });
  await expect(tryNow).toHaveAttribute('aria-busy', 'false');
  const tried = page.waitForEvent('requestfailed');
  await tryNow.focus();
  await tried;
  await expect(tryNow).toBeFocused();
  await page.unroute('**/api/**');

  await expect(page.getByRole('link', { name: 'steady' })).toBeVisible();
  forgive(faults, UNREACHED);
});

/** How the first element of each kind in the main part is laid out. */
const layout = (page: Page) =>
  page.evaluate(() => {
    const kinds = new Map<string, string>();
    for (const element of document.querySelectorAll('main *')) {
      const { display, gap, padding, gridTemplateColumns } = getComputedStyle(element);
      const kind = `${element.tagName}.${element.getAttribute('class') ?? ''}`;
      if (!kinds.has(kind)) kinds.set(kind, [display, gap, padding, gridTemplateColumns !== 'none'].join(' / '));
    }
    return Object.fromEntries(kinds);
  });

test('a page that is first opened while the service is away opens whole when it is back', async ({
  page,
  alone,
  faults,
  browserName,
}) => {
  test.slow();
  const account = await alone.account();
  await alone.server(account, 'steady');
  await enter(page, account, `${alone.origin}/`);
  await expect(page.getByRole('link', { name: 'steady' })).toBeVisible();
  await page.evaluate(() => Object.assign(window, { isSamePage: true }));

  await alone.stopService();
  await navigation(page).getByRole('link', { name: t.app.run() }).click();

  await expect(page.getByRole('heading', { name: t.app.waiting() })).toBeVisible();
  await expect(page.getByText(t.app.newer())).toBeHidden();

  await alone.startService();

  await expect(page.getByRole('heading', { name: t.run.earlier() })).toBeVisible(BACK);
  await expect(lost(page)).toBeHidden(BACK);
  // Firefox does not ask again for a file that did not come: the page loads itself again.
  expect(await page.evaluate(() => 'isSamePage' in window)).toBe(browserName === 'chromium');
  // What is still being read looks different.
  await expect(page.locator('main .busy')).toHaveCount(0);
  const grown = await layout(page);
  await page.reload();
  await expect(page.getByRole('heading', { name: t.run.earlier() })).toBeVisible();
  await expect(page.locator('main .busy')).toHaveCount(0);
  expect(grown).toEqual(await layout(page));
  forgive(faults, UNREACHED);
});

test('a page of another version is loaded again, once', async ({ signedIn: page, faults }) => {
  await page.goto('/');
  await expect(navigation(page)).toBeVisible();
  await page.evaluate(() => Object.assign(window, { isSamePage: true }));
  // The service was replaced: the files of this page's version are gone, and its page names others.
  await page.route('**/assets/Alerts-*', (route) => route.fulfill({ status: 404 }));
  let isAsked = false;
  await page.route(
    (url) => url.pathname === '/' || url.pathname === '/alerts',
    async (route) => {
      const answer = await answerTo(route);
      const text = (await answer.text()).replaceAll(/index-[\w-]+\.js/g, 'index-newer.js');
      const isPage = route.request().isNavigationRequest();
      isAsked ||= !isPage;
      await route.fulfill(isPage ? { response: answer } : { response: answer, body: text });
    },
  );

  await navigation(page).getByRole('link', { name: t.app.alerts() }).click();

  await expect(page.getByRole('heading', { name: t.app.newer() })).toBeVisible();
  expect(isAsked).toBe(true);
  // The page reloaded automatically, which did not help here.
  expect(await page.evaluate(() => 'isSamePage' in window)).toBe(false);
  await page.unrouteAll();
  await page.getByRole('button', { name: t.app.reload() }).click();
  await expect(page.getByRole('heading', { name: t.app.alerts(), exact: true })).toBeVisible();
  // A page that the test made up is a stranger to the browser, and its sockets are not opened.
  forgive(faults, UNREACHED);
});

test('a dialog whose file does not come says why, and the page is loaded again for it', async ({
  signedIn: page,
  faults,
}) => {
  await page.goto('/');
  const dialog = page.getByRole('dialog', { name: t.app.keys() });
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  await page.route('**/assets/KeyList-*', (route) => route.abort());
  await page.keyboard.press('?');

  await expect(page.getByText(t.app.partMissing())).toBeVisible();
  await page.getByRole('button', { name: t.app.dismiss() }).click();

  // The service was replaced: its page names other files.
  const newer = '<script type="module" src="/assets/index-newer.js"></script><div id="app"></div>';
  await page.route(
    (url) => url.pathname === '/',
    (route) => route.fulfill({ contentType: 'text/html', body: newer }),
  );
  await page.keyboard.press('?');
  await expect(page.getByText(t.app.newer())).toBeVisible();

  await page.unrouteAll();
  await page.getByRole('button', { name: t.app.reload() }).click();
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  await page.keyboard.press('?');
  await expect(dialog).toBeVisible();
  forgive(faults, UNREACHED);
});

test('a form that could not be sent says so and keeps what was typed', async ({ signedIn: page }) => {
  await page.goto('/servers/new');
  await page.getByLabel(t.addServer.name()).fill('patient');
  await page.route('**/api/v1/servers', (route) => route.abort());
  await page.getByRole('button', { name: t.addServer.next() }).click();

  await expect(page.getByRole('alert')).toContainText(t.app.failed());
  await expect(page.getByLabel(t.addServer.name())).toHaveValue('patient');

  await page.unroute('**/api/v1/servers');
  await page.getByRole('button', { name: t.addServer.next() }).click();
  await expect(page.getByText(t.addServer.waiting())).toBeVisible();
});

test('a server whose agent goes away says since when, and nothing of it stays green', async ({
  signedIn: page,
  context,
  account,
  site,
}) => {
  await page.goto('/');
  const server = await site.server(account, 'leaving');
  const agent = await site.agent(account, server);
  const card = page.getByRole('article').filter({ hasText: 'leaving' });
  await expect(card.getByText(t.server.online())).toBeVisible();
  const ofServer = await context.newPage();
  await ofServer.goto(`/servers/${server.id}`);
  await expect(ofServer.getByText(t.server.online(), { exact: true })).toBeVisible();

  await agent.end();

  await expect(card.getByText(t.server.offline())).toBeVisible();
  await expect(card.getByText(t.plain(t.fleet.lastSeen()))).toBeVisible();
  await expect(
    page.getByRole('group', { name: t.fleet.status() }).getByRole('button', { name: `1 ${t.status.countedOffline()}` }),
  ).toBeVisible();
  await expectNothingGreen(page);
  await expect(ofServer.getByText(t.server.offline(), { exact: true })).toBeVisible();
  await expect(ofServer.getByText(t.like(t.plain(t.overview.offline({ ago: '{}' }))))).toBeVisible();
  await expectNothingGreen(ofServer);

  await site.agent(account, server);
  await expect(card.getByText(t.server.online())).toBeVisible();
  await expect(ofServer.getByText(t.server.online(), { exact: true })).toBeVisible();
  await expect(ofServer.getByText(t.like(t.plain(t.overview.offline({ ago: '{}' }))))).toBeHidden();
});
