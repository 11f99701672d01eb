import type { Page, Request } from '@playwright/test';
import { expectAccessible } from './support/accessible.ts';
import { startFans } from './support/fans.ts';
import { enter, expect, test } from './support/test.ts';
import * as t from './support/texts.ts';

const map = (page: Page, metric: string) => page.getByRole('application', { name: t.timeline.map({ metric }) });
const panel = (page: Page, server: string) =>
  page.getByRole('complementary', { name: t.like(t.timeline.panel({ server, time: '{}' })) });

/** Opens the map with a server of it. A new agent is on it once its first minute is over. */
async function onMap(page: Page, path: string, name: string): Promise<void> {
  test.slow();
  await expect(async () => {
    await page.goto(path);
    await expect(page.getByRole('table').getByRole('button', { name, exact: true })).toBeVisible({ timeout: 10_000 });
  }).toPass();
}

test('a server of the table opens its minute: charts, processes, events, sign-ins, deploys and lines', async ({
  signedIn: page,
  account,
  site,
}) => {
  // Its agent has just connected, whichever test comes first.
  const server = await site.server(account);
  const { name } = server;
  await site.agent(account, server, '--logs', 'on', '--log-path', site.directory);
  const deploy = { kind: 'deploy', text: 'Shop', version: '2.14.0' };
  await site.call('POST', `/servers/${server.id}/events`, account.token, deploy);
  await onMap(page, '/timeline?range=15m', name);
  await page.getByRole('table').getByRole('button', { name, exact: true }).click();

  const minute = panel(page, name);
  await expect(minute.getByRole('heading', { name, level: 2 })).toBeVisible();
  await expect(page).toHaveURL(/server=.*&at=/);
  const figure = minute.getByRole('figure').first();
  await expect(figure.locator('canvas')).toBeVisible();
  // What happened stands on the charts, too.
  await figure.getByRole('toolbar', { name: t.charts.events() }).getByRole('button').first().focus();
  await expect(figure.locator('.tip')).toContainText(t.overview.agentConnected());
  await expect(minute.getByRole('region', { name: t.moment.processes() })).toBeVisible();
  const events = minute.getByRole('region', { name: t.moment.events() });
  await expect(events.getByText(t.overview.agentConnected())).toBeVisible();
  await expect(events.getByText(t.overview.deployedVersion({ what: 'Shop', version: '2.14.0' }))).toBeVisible();
  const signIn = events.getByRole('listitem').filter({ hasText: t.like(t.audit.signedIn(), 'i') });
  await expect(signIn.first()).toContainText(t.moment.byFrom({ user: account.username, address: '127.0.0.1' }));
  await expect(minute.getByRole('link', { name: t.moment.openLogs() })).toHaveAttribute(
    'href',
    /past=1&since=.*&until=/,
  );
  await expectAccessible(page);

  // The same address shows the same minute.
  await page.reload();
  await expect(minute.getByRole('heading', { name, level: 2 })).toBeVisible();
  await minute.getByRole('button', { name: t.timeline.close() }).click();
  await expect(minute).toBeHidden();
  await expect(page).not.toHaveURL(/server=/);
});

test('the map is read and opened by keys', async ({ page, control }) => {
  await enter(page, control.account, '/account');
  await onMap(page, '/timeline?range=15m&sort=name', 'control');

  await map(page, t.timeline.cpu()).focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowLeft');

  await expect(page.getByText(t.like(t.timeline.said({ server: 'control', time: '{}', value: '{}' })))).toBeAttached();
  await page.keyboard.press('Enter');
  await expect(panel(page, 'control')).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(panel(page, 'control')).toBeHidden();
});

test('what happened in a minute is read once, and not again when more of the map comes', async ({
  signedIn: page,
  account,
  site,
}) => {
  const [server, other] = [await site.server(account, 'one'), await site.server(account, 'other')];
  const { id } = server;
  const [reads, maps]: [string[], string[]] = [[], []];
  const pending = new Set<Request>();
  await page.clock.install();
  page.on('request', (request) => {
    const { pathname, search } = new URL(request.url());
    const isMap = pathname.endsWith('/fleet/heat');
    const isRead = pathname.startsWith(`/api/v1/metrics/${id}/`) || /\/api\/v1\/(audit|events)$/.test(pathname);
    if (!isMap && !isRead) return;
    pending.add(request);
    (isMap ? maps : reads).push(`${pathname}${search}`);
  });
  page.on('requestfinished', (request) => pending.delete(request));
  page.on('requestfailed', (request) => pending.delete(request));
  // Beside the panel the map is narrower, which another map follows, whose minutes are others: until nothing follows any more.
  const settle = async () => {
    let before: number;
    do {
      before = reads.length + maps.length;
      // Whatever the page puts off.
      await page.clock.runFor(1_000);
      await page.clock.runFor(1_000);
      await expect.poll(() => pending.size).toBe(0);
    } while (reads.length + maps.length > before);
  };
  await page.goto(
    `/timeline?from=2026-11-20T00:00:00Z&to=2026-11-20T06:00:00Z&q=one&server=${id}&at=2026-11-20T03:12:00Z`,
  );
  await expect(panel(page, 'one').getByText(t.moment.noOwnEvents())).toBeVisible();
  await expect(panel(page, 'one').getByText(t.moment.nothingThen()).first()).toBeVisible();
  await settle();
  for (const what of [`/metrics/${id}/names`, '/audit', '/events'])
    expect(reads.filter((read) => read.startsWith(`/api/v1${what}?`))).not.toEqual([]);
  expect(reads.filter((read, at) => reads.indexOf(read) < at)).toEqual([]);
  reads.length = 0;

  await page.getByRole('searchbox').fill('');
  await expect.poll(() => maps.some((map) => map.includes(other.id))).toBe(true);
  await settle();

  expect(reads).toEqual([]);
});

test('the address says what is shown', async ({ page, control }) => {
  await enter(page, control.account, '/timeline?metric=memory_percent&range=1h&show=peak&sort=name&q=contr');

  await expect(map(page, t.timeline.memory())).toBeVisible();
  await expect(page.getByLabel(t.timeline.metric())).toHaveValue('memory_percent');
  await expect(page.getByRole('button', { name: t.timeline.peak(), exact: true })).toHaveAttribute(
    'aria-pressed',
    'true',
  );
  await expect(page.getByRole('button', { name: t.timeline.byName() })).toHaveAttribute('aria-pressed', 'true');
  await page.getByLabel(t.timeline.metric()).selectOption({ label: t.timeline.load() });
  await expect(page).toHaveURL(/metric=load_1/);
  await page.getByRole('searchbox').fill('nobody');
  await expect(page.getByText(t.timeline.noMatches())).toBeVisible();
});

test('somebody without servers learns what to do', async ({ signedIn: page }) => {
  await page.goto('/timeline');

  await expect(page.getByText(t.timeline.noServersText())).toBeVisible();
  await expect(page.getByRole('link', { name: t.timeline.addServer() })).toHaveAttribute('href', '/servers/new');
});

test('a click on the map opens what is under the pointer', async ({ page, control }) => {
  await enter(page, control.account, '/account');
  await onMap(page, '/timeline?range=5m', 'control');
  const canvas = map(page, t.timeline.cpu()).locator('canvas');
  const box = await canvas.boundingBox();
  if (!box) throw new Error('the map is not there');

  await canvas.hover({ position: { x: box.width - 10, y: 8 } });
  const tip = page.locator('.heat .tip');
  // A minute of the map, and not a second in it.
  await expect(tip).toContainText(/\d\d:\d\d [AP]M to \d\d:\d\d [AP]M/);
  await canvas.click({ position: { x: box.width - 10, y: 8 } });

  await expect(panel(page, 'control')).toBeVisible();
  // The map has become narrower: something else lies there now.
  await expect(tip).toBeHidden();
  await expect(page.getByRole('heading', { name: t.like(t.timeline.highestIn({ cell: '{}' })) })).toContainText(/ to /);
  await page.goBack();
  await expect(panel(page, 'control')).toBeHidden();
});

test('a drag zooms, and Back of the browser leads to the range before', async ({ page, control }) => {
  await enter(page, control.account, '/account');
  await onMap(page, '/timeline?range=5m', 'control');
  const canvas = map(page, t.timeline.cpu()).locator('canvas');
  const before = page.url();
  // That waits until the map stands still: a drag is by places in the window.
  await canvas.hover({ position: { x: 10, y: 8 } });
  const box = await canvas.boundingBox();
  if (!box) throw new Error('the map is not there');

  await page.mouse.move(box.x + box.width * 0.4, box.y + 8);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.8, box.y + 8, { steps: 4 });
  await page.mouse.up();
  await expect(page).toHaveURL(/from=.*to=/);
  const zoomed = page.url();

  await page.goBack();
  await expect(page).toHaveURL(before);
  await expect(page.getByRole('heading', { name: t.timeline.title(), level: 1 })).toBeVisible();
  await page.goForward();
  await expect(page).toHaveURL(zoomed);
});

test('the button that leads back closes the panel that was opened since', async ({ page, control }) => {
  await enter(page, control.account, '/account');
  await onMap(page, '/timeline?range=5m', 'control');
  const before = page.url();
  await page.getByRole('button', { name: t.timeline.before() }).click();
  await expect(page).toHaveURL(/from=.*to=/);
  await map(page, t.timeline.cpu()).focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await expect(panel(page, 'control')).toBeVisible();

  await page.getByRole('button', { name: t.overview.back(), exact: true }).click();

  await expect(page).toHaveURL(before);
  await expect(panel(page, 'control')).toBeHidden();
});

test('the map shows any series that a server has', async ({ signedIn: page, account, site }) => {
  test.slow();
  for (const name of ['a-1', 'a-2', 'a-3', 'a-4']) await site.agent(account, await site.server(account, name));
  const { key } = await site.server(account, 'z-fans');
  await startFans(await page.context().newPage(), key);
  await page.bringToFront();
  await site.until(async () => {
    const { names } = await site.call<{ names: unknown[] }>('GET', '/metrics/fleet/names?q=fan_', account.token);
    return names.length === 2;
  }, 'the fans are measured');
  await page.goto('/timeline?range=5m');
  const choice = page.getByLabel(t.timeline.metric());
  await expect(map(page, t.timeline.cpu())).toBeVisible();

  await choice.focus();
  await expect(choice.locator('option', { hasText: 'fan_speed' })).toBeAttached();
  await choice.selectOption('fan_speed');

  await expect(map(page, 'fan_speed')).toBeVisible();
  await expect(page).toHaveURL(/metric=fan_speed/);
});
