import { enter, expect, navigation, tab, test } from './support/test.ts';
import * as t from './support/texts.ts';

test('a slash goes to the search, and Esc leaves it', async ({ signedIn: page, account, site }) => {
  await page.goto('/');
  await site.server(account, 'apple');
  await site.server(account, 'pear');
  await expect(page.getByRole('link', { name: 'pear' })).toBeVisible();

  await page.keyboard.press('/');
  const search = page.getByRole('searchbox', { name: t.fleet.search() });
  await expect(search).toBeFocused();
  await expect(search).toHaveValue('');
  await page.keyboard.type('app');

  await expect(page.getByRole('link', { name: 'apple' })).toBeVisible();
  await expect(page.getByRole('link', { name: 'pear' })).toBeHidden();
  await page.keyboard.press('Escape');
  await expect(search).not.toBeFocused();
});

test('g and a letter go places, but not while somebody types', async ({ signedIn: page, account, site }) => {
  await page.goto('/');
  await site.server(account, 'apple');
  const places: [string, RegExp][] = [
    ['a', /\/alerts$/],
    ['r', /\/run$/],
    ['c', /\/account$/],
    ['f', /\/$/],
    ['n', /\/servers\/new$/],
  ];
  await expect(page.getByRole('link', { name: 'apple' })).toBeVisible();
  for (const [key, address] of places) {
    // One after the other without waiting: the second must follow soon.
    await Promise.all([page.keyboard.press('g'), page.keyboard.press(key)]);
    await expect(page).toHaveURL(address);
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  }

  await page.getByLabel(t.addServer.name()).focus();
  await page.keyboard.type('ga/?');

  await expect(page.getByLabel(t.addServer.name())).toHaveValue('ga/?');
  await expect(page).toHaveURL(/\/servers\/new$/);
});

test('a dialog takes the focus, keeps it, and gives it back', async ({ signedIn: page, account, site }) => {
  const server = await site.server(account);
  await page.goto(`/servers/${server.id}/keys`);
  const opener = page.getByRole('button', { name: t.keys.create() });
  await opener.focus();
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog', { name: t.keys.create() });
  await expect(dialog).toBeVisible();
  await expect(dialog.getByLabel(t.keys.name())).toBeFocused();

  const isInside = () => dialog.evaluate((element) => element.contains(document.activeElement));
  for (let press = 0; press < 8; press += 1) {
    await page.keyboard.press('Tab');
    // Past the last one the browser's own bar has its turn, never the page behind.
    const isElsewhere = await page.evaluate(() => document.activeElement === document.body);
    expect(isElsewhere || (await isInside())).toBe(true);
  }
  await page.keyboard.press('Escape');

  await expect(dialog).toBeHidden();
  // Of the page; where the browser's own bar had its turn, Firefox leaves it there.
  await expect.poll(() => opener.evaluate((element) => element === document.activeElement)).toBe(true);
});

test('the list of keys is one key away', async ({ signedIn: page }) => {
  await page.goto('/');
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  await page.keyboard.press('?');

  await expect(page.getByRole('dialog', { name: t.account.keys() })).toContainText(t.account.keySearch());
  await page.keyboard.press('Escape');
  await expect(page.getByRole('dialog')).toBeHidden();
});

test('the first Tab offers to skip the navigation', async ({ signedIn: page }) => {
  await page.goto('/');
  // The next Tab needs something to reach.
  await expect(page.getByRole('main').getByRole('link').first()).toBeVisible();
  await page.keyboard.press('Tab');
  const skip = page.getByRole('link', { name: t.app.skip() });
  await expect(skip).toBeFocused();

  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');

  expect(await page.getByRole('main').evaluate((main) => main.contains(document.activeElement))).toBe(true);
});

test('a server is reached and a command run on it without a mouse', async ({ page, control }) => {
  await enter(page, control.account);
  await expect(page.getByRole('link', { name: control.server.name })).toBeVisible();

  await page.keyboard.press('/');
  await page.keyboard.type(control.server.name);
  const link = page.getByRole('link', { name: control.server.name, exact: true });
  for (let press = 0; press < 30 && !(await link.evaluate((it) => it === document.activeElement)); press += 1)
    await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  const commands = tab(page, t.server.commands());
  await commands.focus();
  await page.keyboard.press('Enter');
  await page.getByRole('textbox', { name: t.commands.command() }).focus();
  await page.keyboard.type('echo typed');
  await page.keyboard.press('Enter');

  await expect(page.getByRole('region', { name: t.run.output() })).toContainText('typed');
});

test('each place of the rail has a key, which a narrow rail says in its title', async ({ signedIn: page }) => {
  await page.goto('/');
  const rail = navigation(page);
  const keys = rail.getByRole('link', { name: t.app.timeline() }).locator('kbd');
  for (const [index, name] of ['g', 't'].entries()) {
    await expect(keys.nth(index)).toBeVisible();
    await expect(keys.nth(index)).toHaveAttribute('data-name', name);
    // Chromium says the letter, Firefox where it is from.
    const drawn = await keys.nth(index).evaluate((key) => getComputedStyle(key, '::before').content);
    expect([`"${name}"`, 'attr(data-name)']).toContain(drawn);
  }
  for (const [key, address] of [
    ['t', /\/timeline$/],
    ['e', /\/explore$/],
    ['d', /\/dashboards$/],
    ['l', /\/logs$/],
  ] as const) {
    await Promise.all([page.keyboard.press('g'), page.keyboard.press(key)]);
    await expect(page).toHaveURL(address);
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  }

  await page.setViewportSize({ width: 1000, height: 800 });
  await expect(rail.getByRole('link', { name: t.app.explore() })).toHaveAttribute(
    'title',
    t.app.withKeys({ label: t.app.explore(), keys: 'g e' }),
  );
});
