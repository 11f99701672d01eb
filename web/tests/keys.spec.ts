import { expect, tab, test } from './support/test.ts';

test('a key is made on the API Keys tab, shown once, and lets the agent in', async ({
  signedIn: page,
  account,
  site,
}) => {
  const server = await site.server(account);
  await page.goto(`/servers/${server.id}`);

  await tab(page, 'API Keys').click();
  await page.getByRole('button', { name: 'Create API Key' }).click();
  await page.getByRole('dialog').getByLabel('Name').fill('night shift');
  await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click();
  const shown = page.getByRole('dialog', { name: 'Your new key' });
  const key = await shown.getByLabel('API key', { exact: true }).innerText();
  await shown.getByText('Install the agent with it').click();
  await expect(shown.getByLabel('Line that installs the agent')).toContainText(key);
  // What is shown only once is not lost by a slip.
  await page.keyboard.press('Escape');
  await expect(shown).toBeVisible();
  await shown.getByRole('button', { name: 'I have kept it' }).click();

  const row = page.getByRole('row', { name: 'night shift' });
  await expect(row).toBeVisible();
  expect(await page.content()).not.toContain(key);
  await page.reload();
  await expect(row).toContainText('never');
  expect(await page.content()).not.toContain(key);
  site.startAgent(key);
  await expect(page.getByText('Online', { exact: true })).toBeVisible();
});

test('revoking a key cuts its agent off at once', async ({ signedIn: page, account, site }) => {
  const server = await site.server(account);
  const agent = await site.agent(account, server);
  await page.goto(`/servers/${server.id}/keys`);
  await expect(page.getByText('Online', { exact: true })).toBeVisible();

  await page.getByRole('button', { name: `Revoke ${server.name}` }).click();
  const asked = page.getByRole('dialog', { name: `Revoke ${server.name}` });
  await expect(asked).toContainText('cut off');
  await asked.getByRole('button', { name: 'Revoke key' }).click();

  await expect(page.getByRole('heading', { name: 'No key yet' })).toBeVisible();
  await expect(page.getByText('Offline', { exact: true })).toBeVisible();
  await site.until(async () => agent.child.exitCode === 3, 'the agent ends because its key is revoked');
});

test('a revocation that was not meant does nothing', async ({ signedIn: page, account, site }) => {
  const server = await site.server(account);
  await page.goto(`/servers/${server.id}/keys`);

  const revoke = page.getByRole('button', { name: `Revoke ${server.name}` });
  await revoke.click();
  await page.keyboard.press('Escape');

  await expect(page.getByRole('dialog')).toBeHidden();
  await expect(revoke).toBeFocused();
  await page.reload();
  await expect(revoke).toBeVisible();
});
