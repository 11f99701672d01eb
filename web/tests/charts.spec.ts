import type { Page } from '@playwright/test';
import { enter, expect, test } from './support/test.ts';

const chart = (page: Page, title: string) =>
  page.getByRole('figure').filter({ has: page.getByRole('heading', { name: title, exact: true }) });

test('charts go on by themselves, and stand still when somebody looks at a past', async ({ page, control }) => {
  await enter(page, control.account, `/servers/${control.server.id}`);
  const time = chart(page, 'CPU').getByRole('slider');
  await expect(time).toHaveAttribute('aria-valuetext', /\d/);
  const end = () => time.getAttribute('aria-valuemax').then(Number);
  const before = await end();

  await expect.poll(end).toBeGreaterThan(before);

  await page.getByRole('button', { name: 'From – to' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Show' }).click();
  await expect(page.getByRole('button', { name: 'Live' })).toBeVisible();
  await expect(page).toHaveURL(/from=/);
  await page.getByRole('button', { name: 'Live' }).click();
  await expect.poll(end).toBeGreaterThan(before);
});

test('the numbers of now are those of now, whatever the charts show', async ({ page, control }) => {
  const path = `/servers/${control.server.id}?from=2026-01-05T03:00:00Z&to=2026-01-05T03:20:00Z`;
  await enter(page, control.account, path);
  const now = page.getByRole('list', { name: 'Now' });
  await expect(page.getByRole('button', { name: 'Live' })).toBeVisible();

  await expect(now.getByTitle('Received')).toHaveText(/\d.*B\/s/);
  await expect(now.getByTitle('Sent')).toHaveText(/\d.*B\/s/);
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
  const happened = page.getByRole('region', { name: 'What happened' });

  await expect(happened.getByText('Agent disconnected')).toBeVisible();
  await expect(happened.getByText('Agent connected')).toBeVisible();

  const other = await visit(account, `/servers/${server.id}`);
  await expect(other.getByRole('region', { name: 'What happened' }).getByText('Agent disconnected')).toHaveCount(1);
});

test('the cursor is the same time in all charts, by keys too', async ({ page, control }) => {
  await enter(page, control.account, `/servers/${control.server.id}`);
  const cpu = chart(page, 'CPU').getByRole('slider');
  const memory = chart(page, 'Memory').getByRole('slider');
  await expect(cpu).toHaveAttribute('aria-valuetext', /\d/);
  await expect(memory).toHaveAttribute('aria-valuetext', /^Now/);

  await cpu.focus();
  await page.keyboard.press('End');

  await expect(cpu).not.toHaveAttribute('aria-valuetext', /^Now/);
  await expect(memory).not.toHaveAttribute('aria-valuetext', /^Now/);
  const at = await cpu.getAttribute('aria-valuenow');
  await expect(memory).toHaveAttribute('aria-valuenow', at ?? '');
  await page.keyboard.press('Escape');
  await expect(memory).toHaveAttribute('aria-valuetext', /^Now/);
});

test('what an agent measured while it was away is in the charts when it is back', async ({
  signedIn: page,
  account,
  site,
}) => {
  const server = await site.server(account, 'gap');
  const agent = await site.agent(account, server);
  await page.goto(`/servers/${server.id}`);
  await expect(chart(page, 'CPU').locator('canvas')).toBeVisible();

  await agent.end();
  await expect(page.getByText(/The agent was last seen/)).toBeVisible();
  await site.agent(account, server);

  await expect(page.getByText(/The agent was last seen/)).toBeHidden();
  await expect(chart(page, 'CPU').getByRole('slider')).toHaveAttribute('aria-valuetext', /^Now.*\d/);
});
