// What the most common flows cost in clicks: more than these fail. The seconds are annotations of the report.
import { Clicks } from './support/clicks.ts';
import { PASSWORD } from './support/site.ts';
import { enter, expect, navigation, tab, test } from './support/test.ts';
import * as t from './support/texts.ts';

test('an account, a server and its first live chart take four clicks and a line', async ({ page, site, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const clicks = await Clicks.on(page);
  const username = site.unique('grace');
  await page.goto('/register');
  await page.getByLabel(t.signIn.username()).fill(username);
  await page.getByLabel(t.signIn.email()).fill(`${username}@example.com`);
  await page.getByLabel(t.signIn.password(), { exact: true }).fill(PASSWORD);
  await page.getByLabel(t.signIn.confirm()).fill(PASSWORD);
  await page.getByRole('button', { name: t.signIn.createAccount() }).click();
  await page.getByRole('main').getByRole('link', { name: t.fleet.addServer() }).first().click();
  await page.getByLabel(t.addServer.name()).fill('first');
  await page.getByRole('button', { name: t.addServer.next() }).click();
  const copied = page.getByRole('button', { name: t.ui.copied() }).waitFor();
  await page.getByRole('button', { name: t.ui.copy() }).first().click();
  await copied;
  const line = await page.evaluate(() => navigator.clipboard.readText());
  clicks.noted('the line is copied');

  site.startAgent(/--key (\S+)/.exec(line)?.[1] ?? '');
  const cpu = page
    .getByRole('figure')
    .filter({ has: page.getByRole('heading', { name: t.overview.cpu(), exact: true }) });
  await expect(cpu.getByRole('slider')).toHaveAttribute('aria-valuetext', /\d/);

  expect(clicks.noted('from the pasted line to the first live chart')).toBeLessThanOrEqual(4);
});

test('a threshold that fires takes three clicks from the page of a server', async ({ page, account, site }) => {
  const server = await site.server(account, 'busy');
  await site.agent(account, server);
  const clicks = await Clicks.on(page);
  await enter(page, account, `/servers/${server.id}`);
  await tab(page, t.alerts.title()).click();
  await page.getByRole('button', { name: t.metrics.memoryName() }).click();
  const editor = page.getByRole('region', { name: t.serverAlerts.addRule() }).filter({ has: page.getByRole('figure') });
  await editor.getByLabel(t.thresholds.holds()).fill('0');
  await editor.getByLabel(t.like(t.thresholds.value({ unit: '{}' }))).fill('0.01');
  await editor.getByRole('button', { name: t.serverAlerts.addRule() }).click();
  clicks.noted('the rule is saved');

  await expect(navigation(page).getByRole('link', { name: t.alerts.title() })).toContainText('1');

  expect(clicks.noted('from the saved rule to the alert')).toBeLessThanOrEqual(3);
});

test('a channel for notifications takes three clicks', async ({ page, account }) => {
  const clicks = await Clicks.on(page);
  await enter(page, account, '/account/notifications');
  await page.getByRole('button', { name: t.channels.add() }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel(t.channels.kind()).selectOption({ label: t.channels.webhook() });
  await dialog.getByLabel(t.channels.name(), { exact: true }).fill('on-call');
  await dialog.getByLabel(t.channels.address()).fill('https://hooks.example.com/alerts');
  await dialog.getByRole('button', { name: t.channels.add() }).click();
  await dialog.getByRole('button', { name: t.channels.saved() }).click();
  await expect(page.getByRole('listitem').filter({ hasText: 'on-call' })).toBeVisible();

  expect(clicks.noted('a channel is added')).toBeLessThanOrEqual(3);
});

test('a command on ten servers takes four clicks', async ({ page, account, site }) => {
  for (let number = 1; number <= 10; number += 1) {
    const server = await site.server(account, `web-${number}`, ['web']);
    site.startAgent(server.key, '--commands', 'on');
  }
  await site.until(async () => {
    const servers = await site.call<{ status: string }[]>('GET', '/servers', account.token);
    return servers.every(({ status }) => status === 'online');
  }, 'all agents are connected');
  const clicks = await Clicks.on(page);
  await enter(page, account);
  await navigation(page).getByRole('link', { name: t.app.run(), exact: true }).click();
  await page.getByRole('group', { name: t.run.byTag() }).getByRole('button', { name: 'web' }).click();
  await page.getByRole('textbox', { name: t.run.command() }).fill('echo all the same');
  await page.getByRole('button', { name: t.run.runOn({ count: 10 }) }).click();
  await page
    .getByRole('dialog')
    .getByRole('button', { name: t.run.runOn({ count: 10 }) })
    .click();
  await expect(page.getByText(t.run.doneOf({ done: 10, total: 10 }))).toBeVisible();

  expect(clicks.noted('ten servers have answered')).toBeLessThanOrEqual(4);
});

test('what ran at a minute takes two clicks from the fleet', async ({ page, control }) => {
  // A new agent is on the map once its first minute is over.
  test.slow();
  const clicks = await Clicks.on(page);
  await enter(page, control.account);
  await navigation(page).getByRole('link', { name: t.timeline.title() }).click();
  await page.getByRole('table').getByRole('button', { name: 'control', exact: true }).click();
  const minute = page.getByRole('complementary', {
    name: t.like(t.timeline.panel({ server: 'control', time: '{}' })),
  });
  await expect(minute.getByRole('region', { name: t.moment.processes() })).toBeVisible();

  expect(clicks.noted('the processes of the minute')).toBeLessThanOrEqual(2);
});
