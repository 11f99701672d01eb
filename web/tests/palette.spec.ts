import type { Page } from '@playwright/test';
import { hold } from './support/answer.ts';
import { expectAccessible } from './support/accessible.ts';
import { enter, expect, expectFits, FROM_A_SHELL, navigation, test, told } from './support/test.ts';
import * as t from './support/texts.ts';

const field = (page: Page) => page.getByRole('combobox', { name: t.palette.title() });
const options = (page: Page) => page.getByRole('listbox', { name: t.palette.results() }).getByRole('option');

async function open(page: Page): Promise<void> {
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  await page.keyboard.press('Control+k');
  await expect(field(page)).toBeFocused();
}

test('a few letters and Enter lead to a server, by its name, its tag or its host', async ({
  signedIn: page,
  account,
  site,
}) => {
  const primary = await site.server(account, 'db-primary', ['storage']);
  await site.server(account, 'web-eu-1', ['frontend']);
  await site.server(account, '<b>bold</b>', []);

  for (const typed of ['dp', 'DB prim']) {
    await page.goto('/account');
    await open(page);
    await page.keyboard.type(typed);
    await expect(options(page).first()).toContainText('db-primary');
    await expect(options(page).first()).toHaveAttribute('aria-selected', 'true');
    await page.keyboard.press('Enter');
    await expect(page).toHaveURL(`/servers/${primary.id}`);
  }

  await open(page);
  await page.keyboard.type('storage');
  await expect(options(page).first()).toContainText(t.palette.tagged({ tag: 'storage' }));
  await expect(options(page).filter({ hasText: 'db-primary' })).toBeVisible();
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL('/?tags=storage');

  await open(page);
  await page.keyboard.type('<b>');
  await expect(options(page).first()).toHaveText(/<b>bold<\/b>/);
  await page.keyboard.type('no such thing');
  await expect(options(page)).toHaveCount(0);
  await expect(page.getByText(t.palette.noMatches())).toBeVisible();
});

test('it is a list that is moved through by keys, told to a screen reader, and left with Esc', async ({
  signedIn: page,
}) => {
  await page.goto('/');
  await open(page);
  await expectAccessible(page);
  const first = await field(page).getAttribute('aria-activedescendant');

  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');

  const third = await field(page).getAttribute('aria-activedescendant');
  expect(third).not.toBe(first);
  await expect(options(page).nth(2)).toHaveAttribute('id', third ?? '');
  await expect(options(page).nth(2)).toHaveAttribute('aria-selected', 'true');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowUp');
  await expect(options(page).last()).toHaveAttribute('aria-selected', 'true');
  await expect(options(page).last()).toBeInViewport();
  await page.keyboard.type('alerts');
  await expect(page.getByRole('dialog').getByRole('status').last()).toContainText(/\d/);

  await page.keyboard.press('Escape');

  await expect(page.getByRole('dialog')).toBeHidden();
  await page.keyboard.press('Control+k');
  await expect(field(page)).toHaveValue('');
  await page.keyboard.press('Control+k');
  await expect(page.getByRole('dialog')).toBeHidden();
});

test('a sentence silences a server, and one click takes it back', async ({ signedIn: page, account, site }) => {
  await page.goto('/');
  const server = await site.server(account, 'db-1');
  await site.server(account, 'db-2');
  const silences = () =>
    site.call<{ server_id: string | null; ends_at: string }[]>('GET', '/alerts/silences', account.token);
  await open(page);

  await page.keyboard.type('silence db-1 for 2 h');
  await expect(options(page).first()).toHaveText(t.palette.silence({ what: 'db-1', length: '2 hours' }));
  const before = Date.now();
  const posted = page.waitForResponse(
    (response) => response.request().method() === 'POST' && response.url().endsWith('/alerts/silences'),
  );
  await page.keyboard.press('Enter');

  await expect(page.getByText(t.like(t.palette.silenced({ what: 'db-1', time: '{}' })))).toBeVisible();
  const undone = told(page, t.palette.undone({ what: 'db-1' }));
  await page.getByRole('button', { name: t.palette.undo() }).click();

  await undone;
  const made = (await (await posted).json()) as { server_id: string; ends_at: string };
  expect(made.server_id).toBe(server.id);
  expect(Math.abs(Date.parse(made.ends_at) - before - 7_200_000)).toBeLessThan(60_000);
  await expect.poll(silences).toEqual([]);
});

test('a silence that the service refuses says why', async ({ signedIn: page, account, site }) => {
  await page.goto('/');
  await site.server(account, 'db-1');
  await page.route('**/api/v1/alerts/silences', (route) => route.abort());
  await open(page);

  await page.keyboard.type('silence db-1');
  await expect(options(page).first()).toContainText('db-1');
  await page.keyboard.press('Enter');

  await expect(page.getByText(t.app.failed())).toBeVisible();
  await expect(page.getByRole('button', { name: t.palette.undo() })).toBeHidden();
});

test('"run on tag" opens a run with its servers picked', async ({ signedIn: page, account, site }) => {
  await page.goto('/');
  await site.server(account, 'alpha', ['web']);
  await open(page);

  await page.keyboard.type('run on tag web');
  await expect(options(page).first()).toHaveText(t.palette.runOn({ what: t.palette.tag({ tag: 'web' }) }));
  await page.keyboard.press('Enter');

  await expect(page).toHaveURL(/\/run\?tag=web$/);
  await expect(page.getByRole('heading', { level: 1, name: t.run.head() })).toBeVisible();
});

test('on a server it offers the parts of that server, and from elsewhere those of the one that is named', async ({
  signedIn: page,
  account,
  site,
}) => {
  const here = await site.server(account, 'alpha');
  const other = await site.server(account, 'beta');
  await page.goto(`/servers/${here.id}`);
  await expect(page.getByRole('heading', { level: 1, name: 'alpha' })).toBeVisible();
  await open(page);

  await page.keyboard.type('contai');
  await expect(options(page).first()).toContainText(t.server.containers());
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(`/servers/${here.id}/containers`);

  await open(page);
  await page.keyboard.type('beta keys');
  await expect(options(page).first()).toHaveText(t.palette.part({ server: 'beta', part: t.server.keys() }));
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(`/servers/${other.id}/keys`);
});

test('it leads an administrator to the tokens of the account and to the users', async ({ page, alone }) => {
  // The first account of a service is an administrator's.
  await enter(page, await alone.account(), `${alone.origin}/account`);
  for (const [typed, text, part] of [
    ['tokens', t.palette.tokens(), 'tokens'],
    ['users', t.palette.users(), 'users'],
  ] as const) {
    await open(page);
    await page.keyboard.type(typed);
    await expect(options(page).first()).toHaveText(text);
    await page.keyboard.press('Enter');
    await expect(page).toHaveURL(`${alone.origin}/account/${part}`);
  }
});

test('colours are chosen with it, and the list of keys opened', async ({ signedIn: page }) => {
  await page.goto('/');
  await open(page);
  await page.keyboard.type('dark');
  await expect(options(page).first()).toHaveText(t.palette.themeDark());
  await page.keyboard.press('Enter');
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
  await expect(page.locator('meta[name="theme-color"]').first()).toHaveAttribute('content', '#171b23');

  await navigation(page).getByRole('button', { name: t.app.palette() }).first().click();
  await page.keyboard.type('all keys');
  await expect(options(page).first()).toContainText(t.palette.showKeys());
  await page.keyboard.press('Enter');
  await expect(page.getByRole('dialog', { name: t.app.keys() })).toContainText(t.app.palette());
});

test('a shell keeps the key for itself', async ({ page, control }) => {
  await enter(page, control.account, `/servers/${control.server.id}/terminal`);
  // The palette has been loaded: it opens at once where the key is its own.
  await open(page);
  await page.keyboard.press('Escape');
  await expect(field(page)).toHaveCount(0);
  await page.getByRole('button', { name: t.terminal.openTerminal() }).click();
  const terminal = page.getByRole('region', { name: t.terminal.label({ name: control.server.name }) });
  await expect(terminal.getByText(t.terminal.open(), { exact: true })).toBeVisible(FROM_A_SHELL);
  await terminal.locator('textarea').focus();

  await page.keyboard.press('Control+k');

  await expect(field(page)).toHaveCount(0);
});

test('it fits a phone, where the bar at the bottom opens it', async ({ signedIn: page, account, site }) => {
  await page.goto('/');
  await site.server(account, `a-${'very-long-'.repeat(9)}name`, ['t'.repeat(40)]);
  await page.setViewportSize({ width: 390, height: 844 });
  await page.reload();

  await navigation(page).getByRole('button', { name: t.app.search(), exact: true }).click();
  await field(page).fill('long');

  await expect(options(page).first()).toContainText('a-very-long');
  await expectFits(page);
  await expectAccessible(page);
});

test('Enter before the servers have arrived leads to the server that is meant', async ({
  signedIn: page,
  account,
  site,
}) => {
  const server = await site.server(account, 'db-primary');
  const answer = await hold(page, '**/api/v1/servers?*');
  await page.goto('/account');
  await open(page);

  await page.keyboard.type('db');
  await expect(page.getByText(t.palette.loadingServers())).toBeVisible();
  await page.keyboard.press('Enter');
  answer();

  await expect(page).toHaveURL(`/servers/${server.id}`);
});

test('what was chosen stays chosen when others come before it, until somebody types', async ({
  signedIn: page,
  account,
  site,
}) => {
  const server = await site.server(account, 'alpha');
  const answer = await hold(page, '**/api/v1/servers?*');
  await page.goto(`/servers/${server.id}`);
  await open(page);
  await expect(page.getByText(t.palette.loadingServers())).toBeVisible();
  const chosen = page.getByRole('dialog').getByRole('option', { selected: true });
  for (let step = 0; step < 4; step += 1) await page.keyboard.press('ArrowDown');
  await expect(chosen).toContainText(t.app.bulkRun());
  const id = (await chosen.getAttribute('id')) ?? '';

  answer();

  await expect(page.getByRole('dialog').getByRole('group', { name: t.palette.here() })).toBeVisible();
  await expect(chosen).toHaveCount(1);
  await expect(chosen).toContainText(t.app.bulkRun());
  await expect(chosen).toHaveAttribute('id', id);
  await expect(field(page)).toHaveAttribute('aria-activedescendant', id);
  await expect(chosen).toBeInViewport();
  await page.keyboard.type('wall');
  await expect(options(page).first()).toHaveAttribute('aria-selected', 'true');
  await field(page).fill('');
  for (let step = 0; step < 2; step += 1) await page.keyboard.press('ArrowDown');
  await expect(options(page).nth(2)).toHaveAttribute('aria-selected', 'true');
  await options(page).filter({ hasText: t.app.bulkRun() }).hover();
  await expect(chosen).toContainText(t.app.bulkRun());
  await page.keyboard.press('Enter');

  await expect(page).toHaveURL('/run');
});

test('servers that could not be read are said so, and all else is there', async ({ signedIn: page }) => {
  await page.route('**/api/v1/servers?*', (route) => route.abort());
  await page.goto('/account');
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();

  await open(page);

  await expect(page.getByRole('dialog').getByRole('alert')).toContainText(t.app.failed());
  await page.keyboard.type('wall');
  await expect(options(page).first()).toContainText(t.app.wall());
});
