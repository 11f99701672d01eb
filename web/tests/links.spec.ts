import { expectAccessible } from './support/accessible.ts';
import { enter, expect, tab, test } from './support/test.ts';
import * as t from './support/texts.ts';

test('what is shown of the fleet stands in its address', async ({ signedIn: page, account, site, visit }) => {
  await site.server(account, 'alpha', ['web']);
  await site.server(account, 'beta', ['db']);
  await page.goto('/');
  await page.getByRole('group', { name: t.fleet.tags() }).getByRole('button', { name: 'db' }).click();
  await page.getByRole('button', { name: t.fleet.table() }).click();
  await page.getByRole('searchbox', { name: t.fleet.search() }).fill('bet');
  await expect(page.getByRole('row', { name: /beta/ })).toBeVisible();
  // The tag alone leads to that row, and the test learns of an address after the page.
  await expect(page).toHaveURL(/q=bet/);

  const other = await visit(account, page.url());

  await expect(other.getByRole('row', { name: /beta/ })).toBeVisible();
  await expect(other.getByRole('link', { name: 'alpha' })).toBeHidden();
  await expect(other.getByRole('searchbox', { name: t.fleet.search() })).toHaveValue('bet');
  await expect(other.getByRole('group', { name: t.fleet.tags() }).getByRole('button', { name: 'db' })).toHaveAttribute(
    'aria-pressed',
    'true',
  );
});

test('an address that does not exist has a page that says so, and the way back', async ({ signedIn: page, site }) => {
  for (const path of ['/nope', '/alert', '/settings']) {
    const answer = await page.goto(path);

    // What stands before the service while pages are made knows no status.
    if (site.origin === site.address) expect(answer?.status()).toBe(404);
    await expect(page.getByRole('main').getByRole('heading', { level: 1, name: t.app.notFound() })).toBeVisible();
    await expect(page).toHaveTitle(t.app.pageTitle({ page: t.app.notFound() }));
    await expectAccessible(page);
  }
  await page.getByRole('main').getByRole('link', { name: t.app.backToFleet() }).click();
  await expect(page).toHaveURL('/');
});

test('the addresses of servers have the fleet above them', async ({ signedIn: page, account, site }) => {
  await site.server(account, 'alpha');

  await page.goto('/servers');

  await expect(page.getByRole('link', { name: 'alpha' })).toBeVisible();
  await expect(page).toHaveTitle(t.app.pageTitle({ page: t.app.fleet() }));
});

test('a tag on the page of a server leads to the servers that have it', async ({ signedIn: page, account, site }) => {
  const server = await site.server(account, 'alpha', ['web']);
  await site.server(account, 'beta', ['db']);
  await page.goto(`/servers/${server.id}`);

  await page.getByRole('main').getByRole('link', { name: 'web', exact: true }).click();

  await expect(page.getByRole('link', { name: 'alpha' })).toBeVisible();
  await expect(page.getByRole('link', { name: 'beta' })).toBeHidden();
});

test('which containers are shown stands in the address, in every language', async ({ page, control, visit }) => {
  await enter(page, control.account, `/servers/${control.server.id}/containers`);
  await page.getByRole('searchbox').fill('nothing has this name');
  await page.getByRole('checkbox', { name: t.containers.showStopped() }).uncheck();
  // The test learns of an address after the page.
  await expect(page).toHaveURL(/running=1/);
  const address = page.url();
  await page.evaluate(() => localStorage.setItem('language', 'de'));

  await page.reload();

  const german = await t.spoken('de', () => t.containers.showStopped());
  await expect(page.getByRole('checkbox', { name: german })).not.toBeChecked();
  const other = await visit(control.account, address);
  await expect(other.getByRole('searchbox')).toHaveValue('nothing has this name');
  await expect(other.getByRole('checkbox', { name: t.containers.showStopped() })).not.toBeChecked();
});

test('the time that the charts show stands in the address', async ({ page, control, visit }) => {
  await enter(page, control.account, `/servers/${control.server.id}`);
  const ranges = page.getByRole('group', { name: t.overview.timeRange() });
  const before = page.url();
  const chosen = ranges.getByRole('button', { name: '6 h' });
  await chosen.click();
  await expect(chosen).toHaveAttribute('aria-pressed', 'true');
  await expect(page).not.toHaveURL(before);

  const other = await visit(control.account, page.url());

  await expect(
    other.getByRole('group', { name: t.overview.timeRange() }).getByRole('button', { name: '6 h' }),
  ).toHaveAttribute('aria-pressed', 'true');
});

test('a zoom is shared by all charts and stands in the address', async ({ page, control }) => {
  await enter(page, control.account, `/servers/${control.server.id}`);
  const sliders = page.getByRole('slider');
  await expect(sliders.first()).toBeVisible();

  await page.getByRole('main').getByRole('button', { name: t.overview.zoomOut() }).click();
  await page.getByRole('main').getByRole('button', { name: t.overview.custom() }).click();
  await page.keyboard.press('Escape');

  const spans = () =>
    sliders.evaluateAll((all) =>
      all.map((one) => Number(one.getAttribute('aria-valuemax')) - Number(one.getAttribute('aria-valuemin'))),
    );
  await expect.poll(async () => new Set(await spans()).size).toBe(1);
  const [span] = await spans();
  await page.reload();
  await expect(sliders.first()).toBeVisible();
  await expect.poll(async () => [...new Set(await spans())]).toEqual([span]);
});

test('each tab of a server has an address of its own, and back goes back', async ({ page, control }) => {
  await enter(page, control.account, `/servers/${control.server.id}`);
  await expect(tab(page, t.server.overview())).toHaveAttribute('aria-current', 'page');
  const { containers, logs, commands, terminal, alerts, keys, settings } = t.server;
  for (const message of [containers, logs, commands, terminal, alerts, keys, settings]) {
    const name = message();
    await tab(page, name).click();
    await expect(tab(page, name)).toHaveAttribute('aria-current', 'page');
  }

  await page.reload();
  await expect(tab(page, t.server.settings())).toHaveAttribute('aria-current', 'page');
  await page.goBack();
  await expect(tab(page, t.server.keys())).toHaveAttribute('aria-current', 'page');
  await expect(page.getByRole('button', { name: t.keys.create() })).toBeVisible();
});

test('an address that leads nowhere says so, and offers a way on', async ({ signedIn: page }) => {
  for (const address of [
    '/servers/00000000-0000-7000-8000-000000000000',
    '/servers/nonsense',
    '/alerts/00000000-0000-7000-8000-000000000000',
    '/run/nonsense',
    '/account/nonsense',
  ]) {
    await page.goto(address);
    await expect(page.getByRole('heading', { name: t.app.notFound() })).toBeVisible();
  }
  await page.getByRole('link', { name: t.app.backToFleet() }).click();
  await expect(page.getByRole('heading', { name: t.app.fleet(), level: 1 })).toBeVisible();
});
