// Tokens for programs, from the page to the program that uses one.
import { expectAccessible } from './support/accessible.ts';
import { expect, test } from './support/test.ts';
import * as t from './support/texts.ts';

test('a token is made for some servers, is shown once, works for a program, and ends when it is revoked', async ({
  signedIn: page,
  account,
  site,
}) => {
  const [mine, other] = [await site.server(account), await site.server(account)];
  await page.goto('/account/tokens');
  await page.getByRole('button', { name: t.tokens.create() }).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: t.tokens.submit(), exact: true }).click();
  await expect(dialog.getByLabel(t.tokens.name())).toHaveAccessibleDescription(new RegExp(t.tokens.giveName()));
  await dialog.getByLabel(t.tokens.name()).fill('prometheus');
  await dialog.getByRole('radio', { name: t.tokens.some() }).check();
  await dialog.getByRole('button', { name: t.tokens.submit(), exact: true }).click();
  await expect(dialog.getByRole('alert')).toHaveText(t.tokens.noScope());
  await dialog.getByRole('group', { name: t.tokens.servers() }).getByRole('checkbox', { name: mine.name }).check();
  await dialog.getByLabel(t.tokens.networks()).fill('127.0.0.0/33');
  await dialog.getByRole('button', { name: t.tokens.submit(), exact: true }).click();
  await expect(dialog.getByLabel(t.tokens.networks())).toHaveAttribute('aria-invalid', 'true');
  await expectAccessible(page);
  await dialog.getByLabel(t.tokens.networks()).fill('127.0.0.0/8');
  await dialog.getByRole('button', { name: t.tokens.submit(), exact: true }).click();

  const token = await dialog.getByLabel(t.tokens.token(), { exact: true }).innerText();
  expect(token).toMatch(/^sbt_/);
  const config = dialog.getByLabel(t.tokens.prometheusConfig());
  await expect(config).toContainText(`credentials: ${token}`);
  await expect(config).toContainText(`/api/v1/metrics/${mine.id}/prometheus`);
  await expectAccessible(page);
  await dialog.getByRole('button', { name: t.tokens.saved() }).click();
  await expect(page.getByText(token)).toHaveCount(0);

  const seen = await site.call<{ id: string }[]>('GET', '/servers', token);
  expect(seen.map(({ id }) => id)).toEqual([mine.id]);
  await expect(site.call('GET', `/servers/${other.id}`, token)).rejects.toThrow(/: 404 /);
  // Its use is written a moment after the answer.
  await expect
    .poll(() => site.call<{ last_used_address: string | null }[]>('GET', '/tokens', account.token))
    .toMatchObject([{ last_used_address: '127.0.0.1' }]);
  await page.reload();
  const row = page.getByRole('row').filter({ hasText: 'prometheus' });
  await expect(row).toContainText(t.access.viewer());
  await expect(row).toContainText(mine.name);
  await expect(row).toContainText('127.0.0.0/8');
  await expect(row).toContainText('127.0.0.1');

  await row.getByRole('button', { name: t.tokens.revokeTitle({ name: 'prometheus' }) }).click();
  await dialog.getByRole('button', { name: t.tokens.revoke() }).click();
  await expect(page.getByText(t.tokens.none())).toBeVisible();
  await expect(site.call('GET', '/servers', token)).rejects.toThrow(/401/);
});

test('an operator of servers with a tag has the rights that were chosen, until a day', async ({
  signedIn: page,
  account,
  site,
}) => {
  const tagged = await site.server(account, site.unique('web'), ['lab']);
  await site.server(account);
  await page.goto('/account/tokens');
  await page.getByRole('button', { name: t.tokens.create() }).first().click();
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByLabel(t.tokens.name())).toBeFocused();
  await dialog.getByLabel(t.tokens.name()).fill('deploys');
  await dialog.getByRole('radio', { name: t.access.operator() }).check();
  await dialog.getByRole('checkbox', { name: t.access.logs() }).uncheck();
  await dialog.getByRole('radio', { name: t.tokens.tagged() }).check();
  await dialog.getByLabel(t.tokens.tag(), { exact: true }).selectOption('lab');
  const year = new Date().getFullYear() + 3;
  const expires = dialog.getByLabel(t.tokens.expires(), { exact: true });
  await expect(expires).toHaveValue(/^\d{4}-\d{2}-\d{2}$/);
  await expires.fill('02/25/2027');
  await dialog.getByRole('button', { name: t.tokens.submit(), exact: true }).click();
  await expect(expires).toHaveAccessibleDescription(new RegExp(t.ui.dayForm({ example: '2026-11-21' })));
  await expires.fill(`${year}-01-01`);
  await dialog.getByRole('button', { name: t.tokens.submit(), exact: true }).click();
  const token = await dialog.getByLabel(t.tokens.token(), { exact: true }).innerText();
  await dialog.getByRole('button', { name: t.tokens.saved() }).click();

  const row = page.getByRole('row').filter({ hasText: 'deploys' });
  await expect(row).toContainText(`${t.access.operator()} (${t.access.containers()})`);
  await expect(row).toContainText(t.tokens.onTag({ tag: 'lab' }));
  const [made] = await site.call<{ expires_at: string }[]>('GET', '/tokens', account.token);
  const days = (Date.parse(made?.expires_at ?? '') - Date.now()) / 86_400_000;
  expect(days).toBeGreaterThan(364);
  expect(days).toBeLessThanOrEqual(366);
  expect((await site.call<{ id: string }[]>('GET', '/servers', token)).map(({ id }) => id)).toEqual([tagged.id]);
});
