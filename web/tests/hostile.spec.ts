import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { enter, expect, test } from './support/test.ts';
import * as t from './support/texts.ts';

/** Runs where it is taken for markup: it would make a request that is refused, and set a mark. */
const EVIL = '<img src=x onerror="window.isRobbed=1"><b>bold</b>';

async function expectHarmless(page: Page): Promise<void> {
  expect(await page.evaluate(() => 'isRobbed' in window)).toBe(false);
  await expect(page.locator('img[src="x"]')).toHaveCount(0);
}

test('names with markup in them are text on every page', async ({ signedIn: page, account, site }) => {
  const server = await site.server(account, EVIL, ['<i>tag</i>']);
  await site.call('PUT', `/servers/${server.id}`, account.token, { description: EVIL });
  await site.agent(account, server, '--commands', 'on');
  await site.call('POST', '/alerts/thresholds', account.token, {
    server_id: server.id,
    metric_type: 'memory',
    comparison: 'gt',
    threshold_value: 0.01,
    enabled: true,
  });
  await site.call('POST', `/commands/${server.id}`, account.token, { command: `echo '${EVIL}'` });

  for (const path of [
    '/',
    '/?view=table&group=tag',
    '/wall',
    '/alerts',
    '/alerts?view=thresholds',
    '/run',
    '/account/audit',
    `/servers/${server.id}`,
    `/servers/${server.id}/keys`,
    `/servers/${server.id}/alerts`,
    `/servers/${server.id}/settings`,
    `/servers/${server.id}/commands`,
  ]) {
    await page.goto(path);
    await expect(page.getByText(EVIL).filter({ visible: true }).first()).toBeVisible();
    await expectHarmless(page);
  }
  await page.getByRole('region', { name: t.commands.history() }).getByRole('link').first().click();
  await expect(page.getByRole('region', { name: t.commandParts.output() })).toContainText(EVIL);
  await page.goto(`/servers/${server.id}/settings`);
  await page.getByRole('button', { name: t.settings.deleteServer() }).click();
  await expect(page.getByRole('dialog')).toContainText(EVIL);
  await expectHarmless(page);
});

test('a log shows markup as text, colours as colours, and no other power of a terminal', async ({
  page,
  control,
  site,
}) => {
  const file = join(control.logs, `${site.unique('evil')}.log`);
  const escapes =
    '\u001b[31mred\u001b[0m \u001b]0;a title\u0007\u001b[2Jcleared \u001b]8;;javascript:alert(1)\u0007link\u001b]8;;\u0007';
  appendFileSync(file, `${EVIL}\n${escapes}\nlast\n`);

  await enter(page, control.account, `/servers/${control.server.id}/logs?source=file&path=${encodeURIComponent(file)}`);

  const lines = page.getByRole('log', { name: t.logs.lines() });
  await expect(lines).toContainText('last');
  await expect(lines).toContainText(EVIL);
  const red = lines.getByText('red', { exact: true });
  const colours = await red.evaluate((it) => [
    getComputedStyle(it).color,
    getComputedStyle(it.parentElement ?? it).color,
  ]);
  expect(colours[0]).not.toBe(colours[1]);
  await expect(lines).toContainText('cleared');
  await expect(lines.getByRole('link')).toHaveCount(0);
  await expect(lines).not.toContainText('\u001b');
  await expect(lines).not.toContainText('a title');
  await expectHarmless(page);
});

test('the output of a command shows markup as text', async ({ page, control }) => {
  await enter(page, control.account, `/servers/${control.server.id}/commands`);
  await page
    .getByRole('textbox', { name: t.commandParts.command() })
    .fill(`printf '%s\\033[31mred\\033[0m\\033[2J' '${EVIL}'`);
  await page.keyboard.press('Enter');

  await expect(page.getByRole('region', { name: t.commandParts.output() })).toContainText(`${EVIL}red`);
  await expectHarmless(page);
});

test('an address cannot put anything into a page', async ({ signedIn: page, account, site }) => {
  await site.server(account, 'plain');
  // With what is there once the servers are known.
  for (const [path, ready] of [
    [
      `/?q=${encodeURIComponent(EVIL)}&tags=${encodeURIComponent(EVIL)}`,
      page.getByRole('heading', { name: t.fleet.noMatches() }),
    ],
    [`/run?command=${encodeURIComponent(EVIL)}`, page.getByText('plain', { exact: true })],
    [`/alerts?view=${encodeURIComponent(EVIL)}`, page.getByRole('heading', { name: t.alerts.noRules() })],
    [`/sign-in?to=${encodeURIComponent('javascript:window.isRobbed=1')}`, page.getByRole('link', { name: 'plain' })],
  ] as const) {
    await page.goto(path);
    await expect(ready).toBeVisible();
    await expectHarmless(page);
  }
});
