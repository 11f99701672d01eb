import { expect, tab, test } from './support/test.ts';
import * as t from './support/texts.ts';

test("nobody sees another's servers: not in the fleet, by a link, by a search, on the wall, to run on", async ({
  signedIn: page,
  account,
  site,
  visit,
}) => {
  const other = await site.account();
  const theirs = await site.server(other, 'theirs-alone', ['secret-tag']);
  await site.agent(other, theirs, '--commands', 'on');
  const mine = await site.server(account, 'mine');
  const owner = await visit(other);
  await expect(owner.getByRole('link', { name: 'theirs-alone' })).toBeVisible();

  await page.goto('/');
  await expect(page.getByRole('link', { name: 'mine' })).toBeVisible();
  await expect(page.getByText('theirs-alone')).toBeHidden();
  await expect(page.getByText('secret-tag')).toBeHidden();
  await page.getByRole('searchbox', { name: t.fleet.search() }).fill('theirs');
  await expect(page.getByRole('heading', { name: t.fleet.noMatches() })).toBeVisible();
  for (const part of ['', '/commands', '/terminal']) {
    await page.goto(`/servers/${theirs.id}${part}`);
    await expect(page.getByRole('heading', { name: t.app.notFound() })).toBeVisible();
    await expect(page.getByText('theirs-alone')).toBeHidden();
  }
  await page.goto('/run');
  await expect(page.getByText('mine', { exact: true })).toBeVisible();
  await expect(page.getByText('theirs-alone')).toBeHidden();
  await page.goto('/wall');
  await expect(page.getByRole('heading', { name: 'mine' })).toBeVisible();
  await expect(page.getByText('theirs-alone')).toBeHidden();
  // A page that was open before learns nothing new either: a server that is made now goes to its owner alone.
  await site.server(other, 'theirs-later');
  await expect(owner.getByRole('link', { name: 'theirs-later' })).toBeVisible();
  await site.server(account, 'mine-later');
  await expect(page.getByRole('heading', { name: 'mine-later' })).toBeVisible();
  await expect(page.getByText('theirs-later')).toBeHidden();
  await page.goto(`/servers/${mine.id}`);
  await tab(page, t.server.keys()).click();
  await expect(page.getByRole('row')).toHaveCount(2);
});

test("another's alerts and commands stay theirs", async ({ signedIn: page, account, site, visit }) => {
  const other = await site.account();
  const theirs = await site.server(other, 'theirs-alone');
  await site.agent(other, theirs, '--commands', 'on');
  await site.server(account, 'mine');
  const owner = await visit(other, '/alerts');
  await page.goto('/alerts');
  await expect(page.getByRole('heading', { name: t.alerts.noRules() })).toBeVisible();

  await site.call('POST', '/alerts/thresholds', other.token, {
    server_id: theirs.id,
    metric_type: 'memory',
    comparison: 'gt',
    threshold_value: 0.01,
    enabled: true,
  });
  await site.call('POST', `/commands/${theirs.id}`, other.token, { command: 'echo between us' });

  const row = owner.getByRole('row').filter({ hasText: 'theirs-alone' });
  await expect(row).toContainText(t.silences.active());
  const address = await row.getByRole('link').first().getAttribute('href');
  await page.goto(address ?? '');
  await expect(page.getByRole('heading', { name: t.app.notFound() })).toBeVisible();
  await page.goto('/alerts');
  await expect(page.getByRole('heading', { name: t.alerts.noRules() })).toBeVisible();
  await page.goto('/account/audit');
  await expect(page.getByRole('row').filter({ hasText: 'mine' }).first()).toBeVisible();
  await expect(page.getByText('between us')).toBeHidden();
  await expect(page.getByText('theirs-alone')).toBeHidden();
});
