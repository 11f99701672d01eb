// Charts over time: the cursor, gaps, zooming, ranges in words, comparisons, tables, and what charts lead to.
import type { Page } from '@playwright/test';
import { expectAccessible } from './support/accessible.ts';
import { chart, settled, slider } from './support/charts.ts';
import { every, startMeasured } from './support/measured.ts';
import type { Account, ManagedServer, Site } from './support/site.ts';
import { enter, expect, test } from './support/test.ts';
import * as t from './support/texts.ts';

/** A server whose agent brought ten minutes from a while ago, and measures again now. */
async function withGap(page: Page, site: Site, account: Account): Promise<ManagedServer> {
  const server = await site.server(account);
  await startMeasured(await page.context().newPage(), server.key, [...every(5, 840, 600), ...every(5, 200, 5)]);
  await page.bringToFront();
  return server;
}

async function span(page: Page): Promise<number> {
  const [from, to] = await slider(page).evaluate((one) => [one.ariaValueMin, one.ariaValueMax]);
  return Number(to) - Number(from);
}

test('the time at the cursor stands on every chart, and the values where one points', async ({ page, control }) => {
  await enter(page, control.account, `/servers/${control.server.id}`);
  await expect(slider(page)).toHaveAttribute('aria-valuetext', /\d/);
  const cpu = chart(page, t.overview.cpu());
  const memory = chart(page, t.overview.memory());
  await expect(cpu.locator('canvas')).toBeVisible();
  await expect(cpu.locator('[data-pill]')).toHaveCount(0);

  await slider(page).focus();
  await page.keyboard.press('End');

  await expect(cpu.locator('[data-pill]')).toHaveText(/\d:\d\d:\d\d/);
  const time = await cpu.locator('[data-pill]').textContent();
  await expect(memory.locator('[data-pill]')).toHaveText(time ?? '');
  await expect(cpu.locator('.tip')).toContainText(time ?? '');
  await expect(cpu.locator('.tip')).toContainText(/\d %/);
  await page.keyboard.press('Enter');
  await slider(page).blur();
  await expect(memory.locator('[data-pill]')).toHaveText(time ?? '');
});

test('a time without data is said', async ({ signedIn: page, account, site }) => {
  const server = await withGap(page, site, account);
  await page.goto(`/servers/${server.id}`);

  await expect(chart(page, t.overview.cpu())).toContainText(t.like(t.charts.noDataBetween({ from: '{}', to: '{}' })));
});

test('the network tile is that of the last two samples, whatever the charts show', async ({
  signedIn: page,
  account,
  site,
}) => {
  const server = await withGap(page, site, account);
  // 200 B/s then, 1,000 B/s now.
  const time = (secondsAgo: number) => new Date(Date.now() - secondsAgo * 1000).toISOString();
  await page.goto(`/servers/${server.id}?from=${time(830)}&to=${time(610)}`);
  await expect(chart(page, t.overview.network()).getByRole('slider')).toHaveAttribute('aria-valuetext', /200 B\/s/);

  const received = page.getByRole('list', { name: t.overview.now() }).getByTitle(t.overview.received());
  await expect(received).toHaveText(/\b1,000 B\/s/);
});

test('a drag zooms, and Back of the browser leads to the range before', async ({ page, control }) => {
  await enter(page, control.account, `/servers/${control.server.id}`);
  await settled(page);
  const before = page.url();
  const box = await slider(page).boundingBox();
  if (!box) throw new Error('the chart has no place');

  const y = box.y + box.height / 3;
  await page.mouse.move(box.x + box.width * 0.4, y);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.7, y, { steps: 4 });
  await page.mouse.up();

  await expect(page).toHaveURL(/from=.*to=/);
  await page.goBack();
  await expect(page).toHaveURL(before);
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
});

test('what was set after a zoom stays when Back leads to the time before', async ({ page, control }) => {
  await enter(page, control.account, `/servers/${control.server.id}`);
  await expect(chart(page, t.overview.cpu()).locator('canvas')).toBeVisible();
  const before = page.url();
  await page.getByRole('button', { name: t.overview.zoomIn() }).click();
  await expect(page).toHaveURL(/from=.*to=/);
  await page.getByLabel(t.overview.compare()).selectOption({ label: t.overview.compareDay() });
  await expect(page).toHaveURL(/compare=day/);

  await page.goBack();
  await expect(page).toHaveURL(`${before}?compare=day`);
  await page.goForward();
  await expect(page).toHaveURL(/(from=.*compare=day)|(compare=day.*from=)/);
  await page.getByRole('button', { name: t.overview.back(), exact: true }).click();
  await expect(page).toHaveURL(`${before}?compare=day`);
});

test('a drag zooms one view of a dashboard, and Back of the browser takes it back', async ({
  signedIn: page,
  account,
  site,
}) => {
  const { key } = await site.server(account);
  await startMeasured(await page.context().newPage(), key, every(5, 840, 5));
  await page.bringToFront();
  const panels: { view_id: string }[] = [];
  for (const [name, series] of [
    ['CPU', 'cpu_percent'],
    ['Memory', 'memory_percent'],
  ] as const) {
    const definition = { version: 1, series: [series], range: '15m' };
    panels.push({
      view_id: (await site.call<{ id: string }>('POST', '/views', account.token, { name, definition })).id,
    });
  }
  const layout = { version: 1, panels };
  const board = await site.call<{ id: string }>('POST', '/dashboards', account.token, { name: 'Board', layout });
  await page.goto(`/dashboards/${board.id}`);
  const slider = (title: string) => page.getByRole('slider', { name: t.charts.timeIn({ title }) });
  const lengthOf = (title: string) =>
    slider(title).evaluate((one) => Number(one.ariaValueMax) - Number(one.ariaValueMin));
  await expect(chart(page, 'CPU').locator('canvas')).toBeVisible();
  await expect.poll(() => lengthOf('Memory')).toBeGreaterThan(800);
  const before = page.url();
  const zoom = async () => {
    const box = await slider('CPU').boundingBox();
    if (!box) throw new Error('the chart has no place');
    await page.mouse.move(box.x + box.width * 0.3, box.y + box.height / 3);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.9, box.y + box.height / 3, { steps: 4 });
    await page.mouse.up();
  };

  await zoom();

  await expect(page).toHaveURL(/zoom=/);
  const zoomed = page.url();
  await expect.poll(() => lengthOf('CPU')).toBeLessThan(700);
  expect(await lengthOf('Memory')).toBeGreaterThan(800);
  const own = page.getByRole('button', { name: t.dashboards.ownRange() });
  await expect(own).toHaveCount(1);
  await page.goBack();
  await expect(page).toHaveURL(before);
  await expect(own).toHaveCount(0);

  // However often somebody zooms, one button leads back to where they began.
  await zoom();
  await expect.poll(() => lengthOf('CPU')).toBeLessThan(700);
  const length = await lengthOf('CPU');
  await slider('CPU').focus();
  await page.keyboard.press('+');
  await expect.poll(() => lengthOf('CPU')).toBeLessThan(length);
  await own.click();
  await expect(page).toHaveURL(before);
  await expect(own).toHaveCount(0);

  await page.goto(zoomed);
  await expect.poll(() => lengthOf('CPU')).toBeLessThan(700);
  await own.click();
  await expect(own).toHaveCount(0);
  await expect(page).toHaveURL(before);
});

test('arrows and keys move to earlier and later times', async ({ signedIn: page, account, site }) => {
  // Long enough that half of it is far from the present.
  const server = await site.server(account);
  await startMeasured(await page.context().newPage(), server.key, every(5, 3_000, 5));
  await page.bringToFront();
  await page.goto(`/servers/${server.id}?range=1h`);
  await expect(chart(page, t.overview.cpu()).locator('canvas')).toBeVisible();
  const end = () => slider(page).getAttribute('aria-valuemax').then(Number);
  await expect(page.getByRole('button', { name: t.overview.later() })).toBeDisabled();
  const now = await end();

  await page.getByRole('button', { name: t.overview.earlier() }).click();
  await expect.poll(end).toBeLessThan(now);
  const earlier = await end();
  await page.keyboard.press('.');
  await expect.poll(end).toBeGreaterThan(earlier);
  await page.keyboard.press(',');
  // The later range ended at the present, which has moved on by some seconds.
  await expect.poll(async () => Math.abs((await end()) - earlier)).toBeLessThan(60);
});

test('a range is typed in words, in English and in German', async ({ page, control }) => {
  await enter(page, control.account, `/servers/${control.server.id}`);
  await expect(slider(page)).toBeVisible();
  for (const words of ['yesterday 03:00 to 04:00', 'gestern 3 bis 4 Uhr']) {
    await page.getByRole('button', { name: t.overview.custom(), exact: true }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel(t.overview.inWords()).fill(words);
    await expect(dialog.getByLabel(t.overview.from(), { exact: true })).toHaveValue(/ 0?3:00/);
    await page.keyboard.press('Enter');

    await expect(dialog).toBeHidden();
    const query = new URL(page.url()).searchParams;
    expect(Date.parse(query.get('to') ?? '') - Date.parse(query.get('from') ?? '')).toBe(3_600_000);
    await page.getByRole('button', { name: t.overview.live(), exact: true }).click();
  }

  await page.getByRole('button', { name: t.overview.custom(), exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel(t.overview.inWords()).fill('some day');
  await page.keyboard.press('Enter');
  await expect(dialog.getByText(t.overview.wordsUnknown())).toBeVisible();
  await dialog.getByLabel(t.overview.inWords()).fill('2 d');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/range=2d/);
});

test('the chart of a server that is young begins with its first sample', async ({ signedIn: page, account, site }) => {
  const server = await site.server(account);
  await startMeasured(await page.context().newPage(), server.key, every(5, 60, 5));
  await page.bringToFront();
  await page.goto(`/servers/${server.id}?range=1h`);

  await expect(page.getByText(t.like(t.overview.sinceFirst({ time: '{}', duration: '{}' })))).toBeVisible();
  expect(await span(page)).toBeLessThan(600);
});

test('the day before is drawn beside the present, with its own entry', async ({ signedIn: page, account, site }) => {
  const server = await site.server(account);
  const past = [...every(5, 86_400 + 900, 86_400 - 300, 70), ...every(5, 300, 5)];
  await startMeasured(await page.context().newPage(), server.key, past);
  await page.bringToFront();
  await page.goto(`/servers/${server.id}?range=5m`);
  const entry = chart(page, t.overview.cpu()).getByRole('button', {
    name: t.charts.dayBefore({ label: t.metrics.allCores() }),
  });
  await expect(chart(page, t.overview.cpu()).locator('canvas')).toBeVisible();
  await expect(entry).toHaveCount(0);

  await page.getByLabel(t.overview.compare()).selectOption({ label: t.overview.compareDay() });

  await expect(entry).toContainText(/7\d %/);
  await expect(page).toHaveURL(/compare=day/);
});

test('the week before is drawn beside the present, with its own entry', async ({ signedIn: page, account, site }) => {
  const server = await site.server(account);
  const week = 7 * 86_400;
  const past = [...every(5, week + 900, week - 300, 40), ...every(5, 300, 5)];
  await startMeasured(await page.context().newPage(), server.key, past);
  await page.bringToFront();
  await page.goto(`/servers/${server.id}?range=5m`);
  const entry = chart(page, t.overview.cpu()).getByRole('button', {
    name: t.charts.weekBefore({ label: t.metrics.allCores() }),
  });
  await expect(chart(page, t.overview.cpu()).locator('canvas')).toBeVisible();
  await expect(entry).toHaveCount(0);

  await page.getByLabel(t.overview.compare()).selectOption({ label: t.overview.compareWeek() });

  await expect(entry).toContainText(/4\d %/);
  await expect(page).toHaveURL(/compare=week/);
});

test('a chart is a table, and leads to an alert rule and to Explore', async ({ page, control }) => {
  await enter(page, control.account, `/servers/${control.server.id}`);
  const title = t.overview.cpu();
  const cpu = chart(page, title);
  await expect(cpu.locator('canvas')).toBeVisible();
  await expect(cpu.getByRole('link', { name: t.overview.explore({ title }) })).toHaveAttribute(
    'href',
    `/explore?server=${control.server.id}&s=cpu_percent`,
  );

  await cpu.getByRole('button', { name: t.charts.asTable({ title }) }).click();
  const table = cpu.getByRole('region', { name: t.charts.tableOf({ title }) });
  await expect(table.getByRole('row').nth(1)).toContainText(/\d %/);
  await expectAccessible(page);
  await cpu.getByRole('button', { name: t.charts.asChart({ title }) }).click();
  await expect(table).toHaveCount(0);

  await cpu.getByRole('button', { name: t.overview.watch({ title }) }).click();
  await expect(page).toHaveURL(/alerts\?new=cpu/);
  await expect(page.getByRole('heading', { name: t.serverAlerts.addRule() })).toBeVisible();
});

test('an alert rule begins with what the history suggests, and says so', async ({ signedIn: page, account, site }) => {
  const server = await site.server(account);
  await startMeasured(await page.context().newPage(), server.key, every(5, 600, 5, 40));
  await page.bringToFront();
  await page.goto(`/servers/${server.id}`);
  await chart(page, t.overview.cpu())
    .getByRole('button', { name: t.overview.watch({ title: t.overview.cpu() }) })
    .click();

  await expect(page.getByText(t.overview.suggestedBy({ days: 7, usual: '46 %' }))).toBeVisible();
  const value = page.getByLabel(t.like(t.thresholds.value({ unit: '{}' }))).first();
  await expect(value).toHaveValue('51');
});

test('an event stands on the time axis, and says what it is to the keyboard', async ({
  signedIn: page,
  account,
  site,
}) => {
  const server = await withGap(page, site, account);
  await page.goto(`/servers/${server.id}?range=1h`);
  const signs = chart(page, t.overview.cpu()).getByRole('toolbar', { name: t.charts.events() });
  const sign = signs.getByRole('button').first();
  await expect(sign).toBeVisible();

  await sign.focus();

  const tip = chart(page, t.overview.cpu()).locator('.tip');
  await expect(tip).toContainText(t.overview.agentConnected());
  await expectAccessible(page);

  // Another one joins it, and stands before it.
  const [first] = await site.call<{ at: string }[]>(
    'GET',
    `/servers/${server.id}/events?kind=online&limit=1`,
    account.token,
  );
  const at = new Date(Date.parse(first?.at ?? '') - 1_000).toISOString();
  await site.call('POST', `/servers/${server.id}/events`, account.token, { kind: 'deploy', text: 'Shop', at });

  await expect(tip).toContainText('Shop');
  await expect(tip).toContainText(t.overview.agentConnected());
  await expect(sign).toBeFocused();
});

test('the list of processes does not say "now" of an earlier one', async ({ signedIn: page, account, site }) => {
  const held: (() => void)[] = [];
  let isHeld = false;
  await page.route('**/api/v1/metrics/*/processes*', async (route) => {
    const isNow = !new URL(route.request().url()).searchParams.has('at');
    if (isNow && isHeld) await new Promise<void>((release) => held.push(release));
    const one = { name: isNow ? 'present' : 'earlier', pid: 1, user: 'root', cpu_percent: 5, memory_bytes: 1_000 };
    const timestamp = new Date(Date.now() - (isNow ? 0 : 86_400_000)).toISOString();
    await route.fulfill({ json: { timestamp, by_cpu: [one], by_memory: [one] } });
  });
  const server = await withGap(page, site, account);
  await page.goto(`/servers/${server.id}`);
  const list = page.getByRole('region', { name: t.overview.topProcesses() });
  await expect(list).toContainText('present');
  await settled(page);
  const box = await slider(page).boundingBox();
  if (!box) throw new Error('the chart has no place');
  await page.mouse.move(box.x + box.width / 3, box.y + box.height / 2);
  await expect(list).toContainText('earlier');

  isHeld = true;
  await page.mouse.move(1, 1);

  await expect(list).toContainText(t.like(t.overview.loadingList({ time: '{}' })));
  await expect(list).not.toContainText(t.overview.whenNow());
  await expect.poll(() => held.length).toBeGreaterThan(0);
  isHeld = false;
  for (const release of held) release();
  await expect(list).toContainText('present');
  await page.unrouteAll({ behavior: 'ignoreErrors' });
});
