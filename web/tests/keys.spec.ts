import { expect, tab, test } from './support/test.ts';
import * as t from './support/texts.ts';

test('a key is made on the API Keys tab, shown once, and lets the agent in', async ({
  signedIn: page,
  account,
  site,
}) => {
  const server = await site.server(account);
  await page.goto(`/servers/${server.id}`);

  await tab(page, t.server.keys()).click();
  await page.getByRole('button', { name: t.keys.create() }).click();
  await page.getByRole('dialog').getByLabel(t.keys.name()).fill('night shift');
  await page.getByRole('dialog').getByRole('button', { name: t.keys.submit() }).click();
  const shown = page.getByRole('dialog', { name: t.keys.newKey() });
  const key = await shown.getByLabel(t.keys.apiKey(), { exact: true }).innerText();
  await shown.getByText(t.keys.install()).click();
  await expect(shown.getByLabel(t.install.installLine())).toContainText(key);
  // What is shown only once is not lost by a slip.
  await page.keyboard.press('Escape');
  await expect(shown).toBeVisible();
  await shown.getByRole('button', { name: t.keys.saved() }).click();

  const row = page.getByRole('row', { name: 'night shift' });
  await expect(row).toBeVisible();
  expect(await page.content()).not.toContain(key);
  await page.reload();
  await expect(row).toContainText(t.keys.never());
  expect(await page.content()).not.toContain(key);
  site.startAgent(key);
  await expect(page.getByText(t.server.online(), { exact: true })).toBeVisible();
});

test('revoking a key cuts its agent off at once', async ({ signedIn: page, account, site }) => {
  const server = await site.server(account);
  const agent = await site.agent(account, server);
  await page.goto(`/servers/${server.id}/keys`);
  await expect(page.getByText(t.server.online(), { exact: true })).toBeVisible();

  await page.getByRole('button', { name: t.keys.revokeTitle({ name: server.name }) }).click();
  const asked = page.getByRole('dialog', { name: t.keys.revokeTitle({ name: server.name }) });
  await expect(asked).toContainText(t.keys.revokeText());
  await asked.getByRole('button', { name: t.keys.revoke() }).click();

  await expect(page.getByRole('heading', { name: t.keys.none() })).toBeVisible();
  await expect(page.getByText(t.server.offline(), { exact: true })).toBeVisible();
  await site.until(async () => agent.child.exitCode === 3, 'the agent ends because its key is revoked');
});

test('a revocation that was not meant does nothing', async ({ signedIn: page, account, site }) => {
  const server = await site.server(account);
  await page.goto(`/servers/${server.id}/keys`);

  const revoke = page.getByRole('button', { name: t.keys.revokeTitle({ name: server.name }) });
  await revoke.click();
  // Its file may take a moment.
  await expect(page.getByRole('dialog')).toBeVisible();
  await page.keyboard.press('Escape');

  await expect(page.getByRole('dialog')).toBeHidden();
  await expect(revoke).toBeFocused();
  await page.reload();
  await expect(revoke).toBeVisible();
});
