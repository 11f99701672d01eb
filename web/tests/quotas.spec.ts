import { enter, expect, test as base } from './support/test.ts';
import { Site } from './support/site.ts';
import * as t from './support/texts.ts';

/** An account may have little there. */
const test = base.extend<{ narrow: Site }>({
  narrow: async ({ origins, page }, use) => {
    const limits = ['--quota-servers', '5', '--quota-silences', '1'];
    const site = await Site.start('127.0.0.1:0', ...limits);
    origins.push(site.origin);
    await use(site);
    // Before the service, so that no page looks for a service that is gone.
    await page.close();
    await site.stop();
  },
});

test('a limit that is near is shown where something is made, and one that is reached says what to do', async ({
  page,
  narrow,
}) => {
  const account = await narrow.account();
  for (let made = 0; made < 3; made += 1) await narrow.server(account);
  const read = page.waitForResponse((response) => response.url().endsWith('/api/v1/auth/quotas'));
  await enter(page, account, `${narrow.origin}/servers/new`);
  const main = page.getByRole('main');
  await expect(main.getByLabel(t.addServer.name())).toBeVisible();
  await (await read).finished();
  await page.waitForLoadState('networkidle');
  await expect(main.getByText(t.like(t.ui.nearLimit({ name: '{}', used: '{}', limit: '{}' })))).toHaveCount(0);

  await narrow.server(account);
  await page.reload();
  await expect(main.getByText(t.ui.nearLimit({ name: t.ui.quotaServers(), used: '4', limit: '5' }))).toBeVisible();

  await narrow.server(account);
  await main.getByLabel(t.addServer.name()).fill('one-too-many');
  await main.getByRole('button', { name: t.addServer.next() }).click();
  const refused = main.getByRole('alert');
  await expect(refused).toContainText('This account may have 5 servers: delete one, or ask');
  await refused.getByRole('link', { name: t.ui.allLimits() }).click();
  await expect(main.getByText(t.account.usedOf({ used: '5', limit: '5' }))).toBeVisible();

  await page.goto(`${narrow.origin}/account/silences`);
  await page.getByRole('button', { name: t.silences.add() }).first().click();
  await page.getByRole('dialog').getByRole('button', { name: t.silences.add() }).click();
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await page.getByRole('button', { name: t.silences.add() }).first().click();
  await expect(page.getByRole('dialog')).toContainText(
    t.ui.atLimit({ name: t.ui.quotaSilences(), used: '1', limit: '1' }),
  );
});
