import type { Page } from '@playwright/test';
import { enter, expect, test } from './support/test.ts';
import * as t from './support/texts.ts';

const chart = (page: Page, title: string) =>
  page.getByRole('figure').filter({ has: page.getByRole('heading', { name: title, exact: true }) });

test('charts continue on their own, and stand still when somebody looks at a past', async ({ page, control }) => {
  await enter(page, control.account, `/servers/${control.server.id}`);
  const time = chart(page, t.overview.cpu()).getByRole('slider');
  await expect(time).toHaveAttribute('aria-valuetext', /\d/);
  const end = () => time.getAttribute('aria-valuemax').then(Number);
  const before = await end();

  await expect.poll(end).toBeGreaterThan(before);

  await page.getByRole('button', { name: t.overview.custom() }).click();
  await page.getByRole('dialog').getByRole('button', { name: t.overview.show() }).click();
  await expect(page.getByRole('button', { name: t.overview.live() })).toBeVisible();
  await expect(page).toHaveURL(/from=/);
  await page.getByRole('button', { name: t.overview.live() }).click();
  await expect(page).not.toHaveURL(/from=/);
  const again = await end();
  await expect.poll(end).toBeGreaterThan(again);
});

test('the numbers of now are those of now, whatever the charts show', async ({ page, control }) => {
  const path = `/servers/${control.server.id}?from=2026-01-05T03:00:00Z&to=2026-01-05T03:20:00Z`;
  await enter(page, control.account, path);
  const now = page.getByRole('list', { name: t.overview.now() });
  await expect(page.getByRole('button', { name: t.overview.live() })).toBeVisible();

  await expect(now.getByTitle(t.overview.received())).toHaveText(/\d.*B\/s/);
  await expect(now.getByTitle(t.overview.sent())).toHaveText(/\d.*B\/s/);
});

test('what happened is there for those who come later', async ({ signedIn: page, account, site, visit }) => {
  const server = await site.server(account, 'eventful');
  const agent = await site.agent(account, server);
  await agent.end();
  await site.until(async () => {
    const { status } = await site.call<{ status: string }>('GET', `/servers/${server.id}`, account.token);
    return status === 'offline';
  }, 'the agent is gone');
  // Nobody looked while it happened.
  await page.goto(`/servers/${server.id}`);
  const happened = page.getByRole('region', { name: t.overview.events() });

  await expect(happened.getByText(t.overview.agentDisconnected())).toBeVisible();
  await expect(happened.getByText(t.overview.agentConnected())).toBeVisible();

  const other = await visit(account, `/servers/${server.id}`);
  await expect(
    other.getByRole('region', { name: t.overview.events() }).getByText(t.overview.agentDisconnected()),
  ).toHaveCount(1);
});

test('what happened before the first sample is listed', async ({ signedIn: page, account, site }) => {
  const server = await site.server(account, 'young');
  const at = new Date(Date.now() - 120_000).toISOString();
  await site.call('POST', `/servers/${server.id}/events`, account.token, { kind: 'note', text: 'Delivered', at });
  await site.agent(account, server);

  await page.goto(`/servers/${server.id}?range=5m`);

  const happened = page.getByRole('region', { name: t.overview.events() });
  await expect(happened.getByText(t.overview.agentConnected())).toBeVisible();
  await expect(happened.getByText('Delivered')).toBeVisible();
});

test('the page of a server that is offline leads to the hour before', async ({ signedIn: page, account, site }) => {
  const server = await site.server(account, 'lost');
  const agent = await site.agent(account, server);
  await agent.end();
  await page.goto(`/servers/${server.id}?range=5m`);
  const show = page.getByRole('button', { name: t.overview.hourBefore() });

  await show.click();

  await expect(page).toHaveURL(/from=.*to=/);
  await expect(show).toBeHidden();
  await page.getByRole('button', { name: t.overview.back(), exact: true }).click();
  await expect(show).toBeVisible();

  // Where nothing was measured there is no resolution.
  await page.goto(`/servers/${server.id}?from=2026-01-05T03:00:00Z&to=2026-01-05T03:20:00Z`);
  await expect(chart(page, t.overview.cpu())).toContainText(t.charts.nothingMeasured());
  await expect(page.locator('p.told')).not.toContainText(t.like(t.charts.resolution({ duration: '{}' })));
  await expect(page.locator('p.told')).not.toContainText(t.like(t.charts.average({ duration: '{}' })));
});

test('the cursor is the same time in all charts, by keys too', async ({ page, control }) => {
  await enter(page, control.account, `/servers/${control.server.id}`);
  const cpu = chart(page, t.overview.cpu()).getByRole('slider');
  const memory = chart(page, t.overview.memory()).getByRole('slider');
  await expect(cpu).toHaveAttribute('aria-valuetext', /\d/);
  await expect(memory).toHaveAttribute('aria-valuetext', new RegExp(`^${t.charts.now()}`));

  await cpu.focus();
  await page.keyboard.press('End');

  await expect(cpu).not.toHaveAttribute('aria-valuetext', new RegExp(`^${t.charts.now()}`));
  await expect(memory).not.toHaveAttribute('aria-valuetext', new RegExp(`^${t.charts.now()}`));
  const at = await cpu.getAttribute('aria-valuenow');
  await expect(memory).toHaveAttribute('aria-valuenow', at ?? '');
  await page.keyboard.press('Escape');
  await expect(memory).toHaveAttribute('aria-valuetext', new RegExp(`^${t.charts.now()}`));
});

test('what an agent measured while it was away is in the charts when it is back', async ({
  signedIn: page,
  account,
  site,
}) => {
  const server = await site.server(account, 'gap');
  const agent = await site.agent(account, server);
  await page.goto(`/servers/${server.id}`);
  await expect(chart(page, t.overview.cpu()).locator('canvas')).toBeVisible();

  await agent.end();
  await expect(page.getByText(t.like(t.plain(t.overview.offline({ ago: '{}' }))))).toBeVisible();
  await site.agent(account, server);

  await expect(page.getByText(t.like(t.plain(t.overview.offline({ ago: '{}' }))))).toBeHidden();
  await expect(chart(page, t.overview.cpu()).getByRole('slider')).toHaveAttribute(
    'aria-valuetext',
    new RegExp(`^${t.charts.now()}.*\\d`),
  );
});
