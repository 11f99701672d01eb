import type { Page } from '@playwright/test';
import { expectNothingGreen, greens } from './support/greens.ts';
import { enter, expect, forgive, tab, test } from './support/test.ts';

/** What a browser writes to the console when a socket finds nobody. */
const UNREACHED = /^WebSocket connection to .* failed/;

const lost = (page: Page) => page.getByText(/No connection to the service/);

for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
  test(`a service that ends by ${signal} is missed and found again by the page itself`, async ({
    page,
    alone,
    faults,
  }) => {
    const account = await alone.account();
    const server = await alone.server(account, 'steady');
    await alone.agent(account, server);
    await enter(page, account, `${alone.origin}/`);
    const card = page.getByRole('article').filter({ hasText: 'steady' });
    await expect(card.getByText('Online')).toBeVisible();
    await expect(card).not.toHaveClass(/stale/);
    const ofServer = await page.context().newPage();
    await ofServer.goto(`${alone.origin}/servers/${server.id}`);
    await expect(ofServer.getByText('Online', { exact: true })).toBeVisible();
    expect(await greens(page)).not.toEqual([]);
    expect(await greens(ofServer)).not.toEqual([]);
    await page.evaluate(() => Object.assign(window, { isSamePage: true }));
    await ofServer.evaluate(() => Object.assign(window, { isSamePage: true }));

    await alone.stopService(signal);

    // It says so, and nothing that it shows passes for the present.
    await expect(lost(page)).toBeVisible();
    await expect(card).toHaveClass(/stale/);
    // A service that ends by itself may have told before that its agent went.
    await expect(card.getByText(/^(as of|last seen)/)).toBeVisible();
    await expectNothingGreen(page);
    await expect(lost(ofServer)).toBeVisible();
    await expect(ofServer.getByText('No fresh data')).toBeVisible();
    await expectNothingGreen(ofServer);

    await alone.startService();

    await expect(lost(page)).toBeHidden();
    await expect(card).not.toHaveClass(/stale/);
    await expect(card.getByText('Online')).toBeVisible();
    await expect(lost(ofServer)).toBeHidden();
    await expect(ofServer.getByText('Online', { exact: true })).toBeVisible();
    // All of it goes on: what asks the service works, and nobody loaded anything.
    await tab(ofServer, 'API Keys').click();
    await expect(ofServer.getByRole('cell', { name: 'steady', exact: true })).toBeVisible();
    for (const one of [page, ofServer]) expect(await one.evaluate(() => 'isSamePage' in window)).toBe(true);
    forgive(faults, UNREACHED);
  });
}

test('a page that is opened while the service is away waits for it', async ({ page, alone, faults }) => {
  const account = await alone.account();
  await alone.server(account, 'steady');
  await enter(page, account, `${alone.origin}/`);
  await expect(page.getByRole('link', { name: 'steady' })).toBeVisible();

  // The page itself is in the browser; what it asks is not answered.
  await page.route('**/api/**', (route) => route.abort());
  await page.reload();
  await expect(page.getByRole('heading', { name: 'The service does not answer' })).toBeVisible();
  await page.unroute('**/api/**');

  await expect(page.getByRole('link', { name: 'steady' })).toBeVisible();
  forgive(faults, UNREACHED);
});

test('a form that could not be sent says so and keeps what was typed', async ({ signedIn: page }) => {
  await page.goto('/servers/new');
  await page.getByLabel('Name').fill('patient');
  await page.route('**/api/v1/servers', (route) => route.abort());
  await page.getByRole('button', { name: 'Continue' }).click();

  await expect(page.getByRole('alert')).toContainText('does not answer');
  await expect(page.getByLabel('Name')).toHaveValue('patient');

  await page.unroute('**/api/v1/servers');
  await page.getByRole('button', { name: 'Continue' }).click();
  await expect(page.getByText('Waiting for the agent')).toBeVisible();
});

test('a server whose agent goes away says since when, and nothing of it stays green', async ({
  signedIn: page,
  context,
  account,
  site,
}) => {
  const server = await site.server(account, 'leaving');
  const agent = await site.agent(account, server);
  const card = page.getByRole('article').filter({ hasText: 'leaving' });
  await expect(card.getByText('Online')).toBeVisible();
  const ofServer = await context.newPage();
  await ofServer.goto(`/servers/${server.id}`);
  await expect(ofServer.getByText('Online', { exact: true })).toBeVisible();

  await agent.end();

  await expect(card.getByText('Offline')).toBeVisible();
  await expect(card.getByText(/last seen/)).toBeVisible();
  await expect(page.getByRole('group', { name: 'Status' }).getByRole('button', { name: '1 offline' })).toBeVisible();
  await expectNothingGreen(page);
  await expect(ofServer.getByText('Offline', { exact: true })).toBeVisible();
  await expect(ofServer.getByText(/The agent was last seen/)).toBeVisible();
  await expectNothingGreen(ofServer);

  await site.agent(account, server);
  await expect(card.getByText('Online')).toBeVisible();
  await expect(ofServer.getByText('Online', { exact: true })).toBeVisible();
  await expect(ofServer.getByText(/The agent was last seen/)).toBeHidden();
});
