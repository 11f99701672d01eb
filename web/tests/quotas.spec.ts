import { enter, expect, test as base } from './support/test.ts';
import { Site } from './support/site.ts';

/** An account may have little there. */
const test = base.extend<{ narrow: Site }>({
  narrow: async ({ origins, page }, use) => {
    const limits = ['--quota-servers', '5', '--quota-silences', '1'];
    const site = await Site.start('127.0.0.1:0', ...limits);
    origins.push(site.origin);
    await use(site);
    // Before the service, so that no page looks for it in vain.
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
  await enter(page, account, `${narrow.origin}/servers/new`);
  const main = page.getByRole('main');
  await expect(main.getByLabel('Name')).toBeVisible();
  await page.waitForLoadState('networkidle');
  await expect(main.getByText('This account')).toHaveCount(0);

  await narrow.server(account);
  await page.reload();
  await expect(main.getByText('This account uses 4 of 5 servers.')).toBeVisible();

  await narrow.server(account);
  await main.getByLabel('Name').fill('one-too-many');
  await main.getByRole('button', { name: 'Continue' }).click();
  const refused = main.getByRole('alert');
  await expect(refused).toContainText('This account may have 5 servers: delete one, or ask');
  await refused.getByRole('link', { name: 'See all limits' }).click();
  await expect(main.getByText('5 of 5')).toBeVisible();

  await page.goto(`${narrow.origin}/account/silences`);
  await page.getByRole('button', { name: 'Add silence' }).first().click();
  await page.getByRole('dialog').getByRole('button', { name: 'Add silence' }).click();
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await page.getByRole('button', { name: 'Add silence' }).first().click();
  await expect(page.getByRole('dialog')).toContainText(
    'This account uses 1 of 1 silences: there is no room for another.',
  );
});
