import { readFileSync } from 'node:fs';
import type { Page } from '@playwright/test';
import { expectAccessible } from './support/accessible.ts';
import { startFans } from './support/fans.ts';
import type { Account, Site } from './support/site.ts';
import { enter, expect, expectFits, navigation, test } from './support/test.ts';
import * as t from './support/texts.ts';

/** Two servers of a tag and one of another, each with a real agent. */
async function threeServers(site: Site, account: Account): Promise<string[]> {
  const ids: string[] = [];
  for (const [name, tag] of [
    ['web-1', 'web'],
    ['web-2', 'web'],
    ['db-1', 'db'],
  ] as const) {
    const server = await site.server(account, name, [tag]);
    await site.agent(account, server);
    ids.push(server.id);
  }
  await site.until(async () => {
    const path = '/metrics/fleet/series?names=cpu_percent';
    const { lines } = await site.call<{ lines: unknown[] }>('GET', path, account.token);
    return lines.length === 3;
  }, 'all three have been measured');
  return ids;
}

const table = (page: Page) => page.getByRole('main').getByRole('table');
const rowHeads = (page: Page) => table(page).getByRole('rowheader');

async function saveView(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: t.explore.saveView() }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel(t.explore.viewName(), { exact: true }).fill(name);
  await dialog.getByRole('button', { name: t.explore.save(), exact: true }).click();
  await expect(dialog).toHaveCount(0);
  await expect(page.getByRole('heading', { name, level: 1 })).toBeVisible();
}

test('a chart is chosen from the list of all series, grouped, and stands in the address', async ({
  signedIn: page,
  account,
  site,
}) => {
  await page.goto('/');
  test.slow();
  await threeServers(site, account);
  await navigation(page).getByRole('link', { name: t.app.explore() }).click();
  await expect(page.getByRole('heading', { name: t.explore.title(), level: 1 })).toBeVisible();

  await page.getByRole('button', { name: t.explore.addSeries() }).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel(t.explore.searchSeries()).fill('cpu_percent');
  await dialog.getByRole('checkbox', { name: 'cpu_percent' }).check();
  await dialog.getByRole('button', { name: t.explore.done() }).click();

  await expect(rowHeads(page)).toHaveCount(3);
  await expect(page).toHaveURL(/s=cpu_percent/);
  await page.getByLabel(t.explore.groupBy()).selectOption('tag');
  await expect(rowHeads(page)).toHaveCount(2);
  await expect(rowHeads(page).filter({ hasText: 'web' })).toBeVisible();
  await expect(table(page).getByRole('columnheader', { name: t.explore.servers() })).toBeVisible();
  await page.getByLabel(t.explore.groupBy()).selectOption('none');
  await page.getByLabel(t.explore.fn(), { exact: true }).selectOption('sum');
  await expect(rowHeads(page)).toHaveCount(1);
  await expect(table(page).getByRole('cell').last()).toHaveText('3');

  await page.reload();
  await expect(page.getByLabel(t.explore.fn(), { exact: true })).toHaveValue('sum');
  await expect(rowHeads(page)).toHaveCount(1);
  await expectAccessible(page);
});

test('buttons and keys move to earlier and later times', async ({ signedIn: page, account, site }) => {
  const server = await site.server(account);
  await site.agent(account, server);
  await page.goto('/explore?s=cpu_percent&range=1h');
  const bounds = () => {
    const query = new URL(page.url()).searchParams;
    return ['from', 'to'].map((name) => Date.parse(query.get(name) ?? '') / 1000) as [number, number];
  };
  const later = page.getByRole('button', { name: t.overview.later() });
  await expect(later).toBeDisabled();

  await page.getByRole('button', { name: t.overview.earlier() }).click();
  await expect(page).toHaveURL(/from=.*to=/);
  const [from, to] = bounds();
  expect(to - from).toBe(3_600);
  await page.keyboard.press(',');
  await expect.poll(bounds).toEqual([from - 1_800, to - 1_800]);
  await page.keyboard.press('.');
  await expect.poll(bounds).toEqual([from, to]);
  // A field keeps its keys.
  await page.getByRole('button', { name: t.explore.addSeries() }).first().click();
  await page.getByRole('dialog').getByLabel(t.explore.searchSeries()).fill('a,b');
  await page.keyboard.press(',');
  await page.keyboard.press('Escape');
  expect(bounds()).toEqual([from, to]);
  await expect(later).toBeEnabled();
  await page.goBack();
  await expect.poll(bounds).toEqual([from - 1_800, to - 1_800]);
});

test('a chart says what its points are, and draws their peaks where somebody wants them', async ({
  signedIn: page,
  account,
  site,
}) => {
  // A line that rises each second: its points are averages of different values.
  await startFans(await page.context().newPage(), (await site.server(account)).key);
  await page.bringToFront();
  await site.until(async () => {
    const path = '/metrics/fleet/series?names=queue_length';
    return (await site.call<{ lines: unknown[] }>('GET', path, account.token)).lines.length === 1;
  }, 'it has been measured');
  await page.goto('/explore?s=queue_length&range=1h');
  const chart = page.getByRole('figure').first();
  await expect(chart).toContainText(t.like(t.charts.average({ duration: '{}' })), { timeout: 30_000 });

  await page.getByRole('checkbox', { name: t.overview.peaks() }).check();
  await expect(page).toHaveURL(/peaks=1/);
  await expect(chart).toContainText(t.like(t.charts.peaksOf({ duration: '{}' })));
  await page.getByLabel(t.explore.groupBy()).selectOption('none');
  await expect(page).toHaveURL(/by=none/);
  await page.reload();
  await expect(page.getByRole('checkbox', { name: t.overview.peaks() })).toBeChecked();
  await saveView(page, 'Peaks');
  await page.goto(page.url().split('&')[0] ?? '');
  // The service keeps no peaks with a view.
  await expect(chart).toContainText(t.like(t.charts.average({ duration: '{}' })));
  await page.getByRole('checkbox', { name: t.overview.peaks() }).check();
  await expect(chart).toContainText(t.like(t.charts.peaksOf({ duration: '{}' })));
  await expect(page.getByText(t.explore.changed(), { exact: true })).toHaveCount(0);
});

test('the top lines are kept, the table is sorted, and servers are chosen by tag', async ({
  signedIn: page,
  account,
  site,
}) => {
  test.slow();
  await threeServers(site, account);

  await page.goto('/explore?s=memory_used&top=2&range=15m');
  await expect(rowHeads(page)).toHaveCount(2);
  await expect(page.getByText(t.explore.leftOut({ shown: 2, count: 1 }))).toBeVisible();

  await page.goto('/explore?s=memory_used&range=15m');
  await expect(rowHeads(page)).toHaveCount(3);
  await table(page).getByRole('button', { name: t.explore.line() }).click();
  await expect(rowHeads(page)).toHaveText([/db-1/, /web-1/, /web-2/]);
  await expect(table(page).getByRole('columnheader', { name: t.explore.line() })).toHaveAttribute(
    'aria-sort',
    'ascending',
  );

  await page.getByRole('button', { name: t.explore.chooseServers() }).click();
  await page.getByRole('dialog').getByRole('button', { name: /^web/ }).click();
  await page.getByRole('dialog').getByRole('button', { name: t.explore.done() }).click();
  await expect(page).toHaveURL(/tag=web/);
  await expect(rowHeads(page)).toHaveCount(2);
});

test('a chart is saved as a view, shown on a dashboard and on the wall, and deleted', async ({
  signedIn: page,
  account,
  site,
}) => {
  test.slow();
  await threeServers(site, account);
  await page.goto('/explore?s=cpu_percent&range=15m');
  await expect(rowHeads(page)).toHaveCount(3);
  await saveView(page, 'CPU of all');
  await expect(page).toHaveURL(/\/explore\?view=[0-9a-f-]{36}$/);
  await page.goto('/explore?s=memory_used&fn=sum&by=none&range=15m');
  await saveView(page, 'Memory in total');

  await page.goto('/dashboards');
  await page.getByRole('button', { name: t.dashboards.newDashboard() }).first().click();
  await page.getByRole('dialog').getByLabel(t.dashboards.name(), { exact: true }).fill('Morning');
  await page.getByRole('dialog').getByRole('button', { name: t.dashboards.create() }).click();
  await page.getByRole('button', { name: t.dashboards.addView() }).last().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: t.dashboards.addNamed({ name: 'CPU of all' }) }).click();
  await dialog.getByRole('button', { name: t.dashboards.addNamed({ name: 'Memory in total' }) }).click();
  await dialog.getByRole('button', { name: t.dashboards.done() }).click();

  const titles = page.getByRole('main').getByRole('heading', { level: 2 });
  await expect(titles).toHaveText(['CPU of all', 'Memory in total']);
  // By keyboard: the second one comes first, and takes the whole width.
  const handle = page.getByRole('button', { name: t.dashboards.moveView({ name: 'Memory in total' }), exact: true });
  await handle.press('ArrowLeft');
  await expect(titles).toHaveText(['Memory in total', 'CPU of all']);
  await expect(handle).toBeFocused();
  await expect(page.getByRole('status').filter({ hasText: 'Memory in total' })).toHaveText(
    t.dashboards.movedTo({ name: 'Memory in total', place: 1, count: 2 }),
  );
  await page.getByRole('button', { name: t.dashboards.save(), exact: true }).click();
  await expect(page.getByRole('button', { name: t.dashboards.edit() })).toBeVisible();
  await expectAccessible(page);
  await page.reload();
  await expect(titles).toHaveText(['Memory in total', 'CPU of all']);

  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: t.dashboards.grafana() }).click(),
  ]);
  expect(download.suggestedFilename()).toBe('morning.json');
  const model = JSON.parse(readFileSync(await download.path(), 'utf8')) as {
    panels: { targets: { expr: string }[] }[];
  };
  expect(model.panels.map((panel) => panel.targets.map((target) => target.expr))).toEqual([
    ['sum(node_memory_MemTotal_bytes - node_memory_MemAvailable_bytes)'],
    ['topk(10, avg by (instance) (100 * signalbox_cpu_usage_ratio))'],
  ]);

  await page.getByRole('link', { name: t.dashboards.wall() }).click();
  await expect(page.getByRole('heading', { name: 'Morning', level: 1 })).toBeVisible();
  await expect(titles).toHaveText(['Memory in total', 'CPU of all']);
  await expectFits(page);
  await page.keyboard.press('Escape');
  await expect(page.getByRole('button', { name: t.dashboards.edit() })).toBeVisible();

  await page.getByRole('button', { name: t.dashboards.deleteTitle() }).click();
  await page.getByRole('dialog').getByRole('button', { name: t.dashboards.deleteIt(), exact: true }).click();
  await expect(page.getByText(t.dashboards.none())).toBeVisible();
  await page.goto('/explore');
  await page.getByRole('link', { name: 'CPU of all' }).click();
  await page.getByRole('button', { name: t.explore.deleteView() }).click();
  await page.getByRole('dialog').getByRole('button', { name: t.explore.deleteIt(), exact: true }).click();
  await expect(page.getByRole('link', { name: 'CPU of all' })).toHaveCount(0);
  await expect(page.getByRole('link', { name: 'Memory in total' })).toBeVisible();
});

test('what happened stands on the time axis of Explore and of dashboards, with the name of its server', async ({
  signedIn: page,
  account,
  site,
}) => {
  const server = await site.server(account);
  await site.agent(account, server);
  const deploy = { kind: 'deploy', text: 'Shop', version: '2.14.0' };
  await site.call('POST', `/servers/${server.id}/events`, account.token, deploy);
  const definition = { version: 1, series: ['cpu_percent'], range: '15m' };
  const view = await site.call<{ id: string }>('POST', '/views', account.token, { name: 'CPU', definition });
  const layout = { version: 1, panels: [{ view_id: view.id }] };
  const board = await site.call<{ id: string }>('POST', '/dashboards', account.token, { name: 'Board', layout });
  const event = t.overview.deployedVersion({ what: 'Shop', version: '2.14.0' });
  const signs = page.getByRole('figure').getByRole('toolbar', { name: t.charts.events() });

  for (const address of ['/explore?s=cpu_percent&range=15m', `/dashboards/${board.id}`]) {
    await page.goto(address);
    const sign = signs.getByRole('button', { name: t.explore.eventOn({ server: server.name, event }) });
    await sign.focus();
    await expect(page.locator('.tip')).toContainText(event);
    await expectAccessible(page);
  }
  await page.goto(`/explore?s=cpu_percent&range=15m&server=${server.id}`);
  await expect(signs.getByRole('button', { name: event })).toBeVisible();
  await page.getByLabel(t.explore.events()).uncheck();
  await expect(signs).toHaveCount(0);
});

test('a view keeps the range that was typed', async ({ signedIn: page }) => {
  await page.goto('/explore?s=cpu_percent');
  await page.getByRole('button', { name: t.overview.custom(), exact: true }).click();
  await page.getByRole('dialog').getByLabel(t.overview.inWords()).fill('2 d');
  await page.keyboard.press('Enter');
  const range = page.getByText(t.overview.follows({ duration: '2 d' }));
  await expect(range).toBeVisible();

  await saveView(page, 'Two days');

  await expect(page).toHaveURL(/\/explore\?view=[0-9a-f-]{36}$/);
  await expect(range).toBeVisible();
  await page.reload();
  await expect(range).toBeVisible();
  await expect(page.getByText(t.explore.changed(), { exact: true })).toHaveCount(0);
});

test('the data of a chart is a table for other programs', async ({ signedIn: page, account, site }) => {
  test.slow();
  const server = await site.server(account, '=web,1');
  await site.agent(account, server);

  await page.goto('/explore?s=cpu_percent&range=15m');
  await expect(rowHeads(page)).toHaveText([/=web,1/]);
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: t.explore.csv() }).click(),
  ]);

  const lines = readFileSync(await download.path(), 'utf8').split('\r\n');
  expect(lines[0]).toBe(
    'timestamp,"cpu_percent =web,1 avg","cpu_percent =web,1 min","cpu_percent =web,1 max","cpu_percent =web,1 servers"',
  );
  expect(lines.some((line) => /^\d{4}-.*Z,[\d.]+,[\d.]+,[\d.]+,1$/.test(line))).toBe(true);
});

test('what is not there is said', async ({ signedIn: page, account, site }) => {
  const other = await site.account();
  const definition = { version: 1, series: ['cpu_percent'] };
  const theirs = await site.call<{ id: string }>('POST', '/views', other.token, { name: 'Theirs', definition });
  const board = await site.call<{ id: string }>('POST', '/dashboards', other.token, { name: 'Theirs' });

  for (const address of [`/explore?view=${theirs.id}`, '/explore?view=no-id']) {
    await page.goto(address);
    await expect(page.getByText(t.explore.viewGone())).toBeVisible();
    await expect(page.getByRole('main')).not.toContainText('Theirs');
  }
  await page.goto(`/explore?view=${theirs.id}`);
  await expect(page.getByText(t.explore.viewGone())).toBeVisible();
  await page.goto(`/dashboards/${board.id}`);
  await expect(page.getByRole('heading', { name: t.dashboards.gone(), level: 1 })).toBeVisible();
  await page.goto('/explore?s=cpu_percent');
  await expect(page.getByText(t.explore.noServersFit())).toBeVisible();

  const own = await site.call<{ id: string }>('POST', '/views', account.token, { name: 'Mine', definition });
  const panels = [{ view_id: own.id }, { view_id: theirs.id }];
  const mine = await site.call<{ id: string }>('POST', '/dashboards', account.token, {
    name: 'Mine',
    layout: { version: 1, panels },
  });
  await page.goto(`/dashboards/${mine.id}`);
  await expect(page.getByText(t.dashboards.viewGone())).toBeVisible();
  await expect(page.getByRole('main')).not.toContainText('Theirs');
});

test('hostile and long names fit on a phone', async ({ signedIn: page, account, site }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  const name = `<img src=x onerror=alert(1)> ${'unbroken'.repeat(8)}`;
  const definition = { version: 1, series: ['cpu_percent', `fan_speed:${'x'.repeat(150)}`] };
  const view = await site.call<{ id: string }>('POST', '/views', account.token, {
    name,
    description: 'y'.repeat(500),
    definition,
  });
  const board = await site.call<{ id: string }>('POST', '/dashboards', account.token, {
    name,
    layout: { version: 1, panels: [{ view_id: view.id, width: 3 }] },
  });

  for (const address of [
    '/explore',
    `/explore?view=${view.id}`,
    '/dashboards',
    `/dashboards/${board.id}`,
    `/dashboards/${board.id}?edit=1`,
    `/dashboards/${board.id}/wall`,
  ]) {
    await page.goto(address);
    await expect(page.getByText(name).first()).toBeVisible();
    await expectFits(page);
    await expectAccessible(page);
  }
});

test('a view that is shared names its owner to others, who cannot change it', async ({
  signedIn: page,
  account,
  site,
  browser,
}) => {
  test.slow();
  await page.goto('/explore?s=cpu_percent&range=15m');
  await page.getByRole('button', { name: t.explore.saveView() }).click();
  const dialog = page.getByRole('dialog');
  const name = site.unique('CPU of all');
  await dialog.getByLabel(t.explore.viewName(), { exact: true }).fill(name);
  await dialog.getByLabel(t.sharing.sharedWith()).selectOption({ label: t.sharing.everyone() });
  await dialog.getByRole('button', { name: t.explore.save(), exact: true }).click();
  await expect(page.getByText(t.sharing.withEveryone())).toBeVisible();

  const other = await browser.newPage({ baseURL: site.origin });
  await enter(other, await site.account(), '/explore');
  await other.getByRole('link', { name, exact: true }).click();
  await expect(other.getByRole('heading', { name, level: 1 })).toBeVisible();
  await expect(other.getByText(t.sharing.by({ user: account.username }))).toBeVisible();
  await expect(other.getByRole('button', { name: t.explore.deleteView() })).toHaveCount(0);
  await other.close();
});
