// The help: documents as pages, for everybody, and the links of the interface that lead there.
import type { Page } from '@playwright/test';
import { expectAccessible } from './support/accessible.ts';
import { enter, expect, expectFits, navigation, test } from './support/test.ts';
import * as t from './support/texts.ts';

const PHONE = { width: 390, height: 844 };

const field = (page: Page) => page.getByRole('searchbox', { name: 'Search the help' });
const results = (page: Page) => page.getByRole('search').getByRole('listitem');
const list = (page: Page) => page.getByRole('navigation', { name: 'Pages', exact: true });
const title = (page: Page, name: string) => page.getByRole('heading', { level: 1, name, exact: true });

/** What the link that somebody presses opens beside the page. */
async function opened(page: Page, press: () => Promise<void>): Promise<Page> {
  const popup = page.waitForEvent('popup');
  await press();
  return popup;
}

test('every page fits a phone, and is reached from the list of all', async ({ page }) => {
  await page.setViewportSize(PHONE);
  await page.goto('/help');
  const addresses = await page
    .locator('nav.pages li a')
    .evaluateAll((links) => links.map((link) => link.getAttribute('href') ?? ''));
  expect(addresses.length).toBeGreaterThan(20);

  for (const address of addresses) {
    await page.goto(address);

    await expect(page.locator('nav.pages [aria-current="page"]')).toHaveAttribute('href', address);
    await expectFits(page);
  }
});

test('the search is used by keys alone', async ({ page }) => {
  await page.goto('/help');
  await page.keyboard.press('/');
  await expect(field(page)).toBeFocused();
  await page.keyboard.type('replace an agents key');

  await expect(results(page).first()).toContainText("Replace an agent's key");
  await expect(page.getByRole('status')).toContainText('result');
  await page.keyboard.press('ArrowDown');
  await expect(results(page).first().getByRole('link')).toBeFocused();
  await expectAccessible(page);
  await page.keyboard.press('ArrowUp');
  await expect(field(page)).toBeFocused();
  await page.keyboard.press('Escape');
  await expect(results(page).first()).toBeHidden();
  await page.keyboard.press('Enter');

  await expect(page).toHaveURL(/\/help\/operate\/secrets#replace-an-agents-key$/);
  await expect(page.getByRole('heading', { name: "Replace an agent's key" })).toBeInViewport();
});

test('a result shows where it is from and what was found', async ({ page }) => {
  await page.goto('/help/start');
  await field(page).fill('host_not_allowed');

  const first = results(page).first();
  await expect(first.getByRole('link')).toHaveAttribute('href', /^\/help\//);
  await expect(first.locator('mark').first()).toBeVisible();

  await field(page).fill('no such words xyzzy');
  await expect(results(page).locator('mark', { hasText: /^(such|words?)$/i })).not.toHaveCount(0);
  await field(page).fill('xyzzy');
  await expect(page.getByRole('status')).toContainText('Nothing found');
  await expect(results(page)).toHaveCount(0);
});

test('an address begins a search', async ({ page }) => {
  await page.goto('/help?q=silences');

  await expect(results(page).first()).toContainText('Silences');
});

test('what is searched is loaded when somebody searches, and again when that failed', async ({ page }) => {
  let asked = 0;
  let isAway = true;
  await page.route('**/assets/help-index*.json', (route) => {
    asked += 1;
    return isAway ? route.abort() : route.continue();
  });
  await page.goto('/help/guides/logs');
  await expect(field(page)).toBeVisible();
  expect(asked).toBe(0);

  await field(page).fill('journal');
  await expect(page.getByRole('status')).toContainText('The search cannot be loaded');
  isAway = false;
  await field(page).pressSequentially(' log');

  await expect(results(page).first()).toBeVisible();
});

test('a page is read without scripts', async ({ browser, site, origins }) => {
  const context = await browser.newContext({ baseURL: site.origin, javaScriptEnabled: false });
  const page = await context.newPage();
  expect(origins).toContain(site.origin);
  await page.goto('/help');
  await list(page).getByRole('link', { name: 'Agents', exact: true }).click();

  await expect(title(page, 'Agents')).toBeVisible();
  await expect(field(page)).toBeHidden();
  await page.setViewportSize(PHONE);
  await expect(list(page)).toBeHidden();
  await page.getByRole('button', { name: 'Pages' }).click();
  await list(page).getByRole('link', { name: 'Logs', exact: true }).click();
  await expect(title(page, 'Logs')).toBeVisible();
  await context.close();
});

test('links between documents lead to pages, and to their parts', async ({ page }) => {
  await page.goto('/help/operate/troubleshooting');
  await page.getByRole('article').getByRole('link', { name: 'Rolling restart', exact: true }).click();

  await expect(page).toHaveURL(/\/help\/operate\/instances#rolling-restart$/);
  await expect(page.getByRole('heading', { name: 'Rolling restart', exact: true })).toBeInViewport();
  await page.getByRole('navigation', { name: 'On this page' }).getByRole('link', { name: 'NATS', exact: true }).click();
  await expect(page).toHaveURL(/#nats$/);

  const next = page.getByRole('link', { name: /^Next/ });
  const name = ((await next.textContent()) ?? '').replace('Next', '');
  await next.click();
  await expect(list(page).getByRole('link', { name, exact: true })).toHaveAttribute('aria-current', 'page');
});

test('on a phone the lists open over the page, and close when somebody has chosen', async ({ page }) => {
  await page.setViewportSize(PHONE);
  await page.goto('/help/guides/alerts');
  await page.getByRole('button', { name: 'On this page' }).click();
  const parts = page.getByRole('navigation', { name: 'On this page' });
  await parts.getByRole('link', { name: 'Channels', exact: true }).click();

  await expect(parts).toBeHidden();
  await expect(page.getByRole('heading', { name: 'Channels', exact: true })).toBeInViewport();
  await page.getByRole('button', { name: 'Pages' }).click();
  await page.keyboard.press('Escape');
  await expect(list(page)).toBeHidden();
});

test('the colours are those that were chosen for the interface', async ({ signedIn: page }) => {
  await page.goto('/');
  await page.getByRole('group', { name: t.app.theme() }).getByRole('button', { name: t.app.themeDark() }).click();

  await page.goto('/help');
  const colours = page.getByRole('group', { name: 'Colours' });
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
  await expect(colours.getByRole('button', { name: 'Dark colours' })).toHaveAttribute('aria-pressed', 'true');
  await colours.getByRole('button', { name: 'Light colours' }).click();
  await page.goto('/');

  await expect(page.locator('html')).toHaveAttribute('data-theme', 'light');
});

test('a block of code is copied', async ({ page, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.goto('/help/guides/agents');
  const block = page.locator('.code').first();
  await block.hover();
  const copied = block.getByRole('button', { name: 'Copied' }).waitFor();
  await block.getByRole('button', { name: 'Copy' }).click();

  await copied;
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(
    (await block.locator('code').textContent())?.trimEnd(),
  );
});

test('what is printed is the document alone', async ({ page }) => {
  await page.goto('/help/guides/logs');
  await page.emulateMedia({ media: 'print' });

  await expect(title(page, 'Logs')).toBeVisible();
  await expect(list(page)).toBeHidden();
  await expect(page.getByRole('banner')).toBeHidden();
  await expect(page.getByRole('button', { name: 'Copy' }).first()).toBeHidden();
});

test('an address that the help does not have says so, and has the list of all pages', async ({ page, site }) => {
  test.skip(site.origin !== site.address, 'what stands before the service while pages are made knows no status');
  const answer = await page.goto('/help/guides/nope');

  expect(answer?.status()).toBe(404);
  await expect(title(page, 'Page not found')).toBeVisible();
  await expectAccessible(page);
  await list(page).getByRole('link', { name: 'Containers', exact: true }).click();
  await expect(title(page, 'Containers')).toBeVisible();
});

test('who cannot sign in reads the help without', async ({ page, account }) => {
  expect(account.token).not.toBe('');
  await page.goto('/sign-in');

  const help = await opened(page, () => page.getByRole('link', { name: t.app.help() }).click());

  await expect(title(help, 'Troubleshooting')).toBeVisible();
  await expect(help.getByRole('heading', { name: 'I cannot sign in' })).toBeInViewport();
});

test('the help of the frame is about the page that is shown', async ({ page, control }) => {
  await enter(page, control.account);
  const link = navigation(page).getByRole('link', { name: t.plain(t.app.helpLink()) });

  for (const [path, address] of [
    ['/', '/help/guides/interface'],
    ['/servers/new', '/help/guides/agents#install-an-agent'],
    ['/alerts?view=silences', '/help/guides/alerts#silences'],
    [`/servers/${control.server.id}`, '/help/guides/metrics'],
    [`/servers/${control.server.id}/containers`, '/help/guides/containers'],
    [`/servers/${control.server.id}/terminal`, '/help/guides/commands#terminals'],
    ['/account/audit', '/help/operate/service#the-audit-log'],
  ] as const) {
    await page.goto(path);
    await expect(link).toHaveAttribute('href', address);
  }
  const help = await opened(page, () => link.click());
  await expect(title(help, 'Run the service')).toBeVisible();
});

test('what somebody has chosen stays when they look a thing up', async ({ signedIn: page }) => {
  await page.goto('/servers/new');
  await page.getByLabel(t.addServer.name()).fill('looked-up');
  await page.getByRole('button', { name: t.addServer.next() }).click();
  await page.getByRole('radio', { name: t.addServer.choose() }).check();
  await page.getByRole('checkbox', { name: t.install.commands() }).check();

  const help = await opened(page, () =>
    page.getByRole('link', { name: t.plain(t.help.link({ about: t.help.policy() })) }).click(),
  );

  await expect(help.getByRole('heading', { name: 'The policy', exact: true })).toBeInViewport();
  await expect(page.getByRole('checkbox', { name: t.install.commands() })).toBeChecked();
});

test('what a server does not allow leads to its policy', async ({ page, account, site }) => {
  const server = await site.server(account);
  await site.agent(account, server);
  await enter(page, account);

  for (const part of ['commands', 'terminal', 'containers', 'logs']) {
    await page.goto(`/servers/${server.id}/${part}`);

    await expect(
      page.getByRole('main').getByRole('link', { name: t.plain(t.help.link({ about: t.help.policy() })) }),
    ).toHaveAttribute('href', '/help/guides/agents#the-policy');
  }
});

test('g and h go to the help', async ({ signedIn: page }) => {
  await page.goto('/alerts?view=thresholds');
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  // One after the other without waiting: the second must follow soon.
  await Promise.all([page.keyboard.press('g'), page.keyboard.press('h')]);

  await expect(page).toHaveURL(/\/help\/guides\/alerts#thresholds$/);
});
