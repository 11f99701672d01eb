import { hold } from './support/answer.ts';
import { enter, expect, navigation, test } from './support/test.ts';
import * as t from './support/texts.ts';

test('a profile is changed, and what is wrong with it is said at its field', async ({ signedIn: page, site }) => {
  const other = await site.account();
  await page.goto('/account');

  await page.getByLabel(t.account.email()).fill(other.email);
  await page.getByRole('button', { name: t.account.save() }).click();
  await expect(page.getByLabel(t.account.email())).toHaveAccessibleDescription(/taken|already/i);
  const username = site.unique('renamed');
  await page.getByLabel(t.account.email()).fill(`${username}@example.com`);
  await page.getByLabel(t.account.username()).fill(username);
  await page.getByRole('button', { name: t.account.save() }).click();

  await expect(navigation(page)).toContainText(username);
  await page.reload();
  await expect(page.getByLabel(t.account.username())).toHaveValue(username);
});

test('colours are chosen, and stay chosen', async ({ signedIn: page }) => {
  await page.goto('/');
  await page.emulateMedia({ colorScheme: 'light' });
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await expect(navigation(page)).toBeVisible();
  const light = await background();

  await navigation(page).getByRole('button', { name: t.app.themeDark() }).click();
  await expect.poll(background).not.toBe(light);
  const dark = await background();
  await page.reload();
  await expect(navigation(page)).toBeVisible();
  expect(await background()).toBe(dark);

  await navigation(page).getByRole('button', { name: t.app.themeSystem() }).click();
  await expect.poll(background).toBe(light);
  await page.emulateMedia({ colorScheme: 'dark' });
  await expect.poll(background).toBe(dark);
});

test('a channel that is added before the service has said that it has no mail server does not begin with e-mail', async ({
  page,
  account,
}) => {
  const answer = await hold(page, '**/api/v1/service');
  await enter(page, account, '/account/notifications');

  await page.getByRole('button', { name: t.channels.add() }).click();
  answer();

  await expect(page.getByRole('dialog').getByLabel(t.channels.kind())).toHaveValue('ntfy');
});

test('a channel is added, and its secret shown once; where it may not lead is refused at its field', async ({
  signedIn: page,
}) => {
  await page.goto('/account/notifications');
  await page.getByRole('button', { name: t.channels.add() }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel(t.channels.kind()).selectOption({ label: t.channels.webhook() });
  await dialog.getByLabel(t.channels.name(), { exact: true }).fill('on-call');
  await dialog.getByLabel(t.channels.address()).fill('http://127.0.0.1:1/');
  await dialog.getByRole('button', { name: t.channels.add() }).click();
  await expect(dialog.getByLabel(t.channels.address())).toHaveAttribute('aria-invalid', 'true');

  await dialog.getByLabel(t.channels.address()).fill('https://hooks.example.com/alerts');
  await dialog.getByRole('button', { name: t.channels.add() }).click();

  const secret = await dialog.locator('code').innerText();
  await dialog.getByRole('button', { name: t.channels.saved() }).click();
  await expect(page.getByRole('listitem').filter({ hasText: 'on-call' })).toBeVisible();
  await page.reload();
  await expect(page.getByRole('listitem').filter({ hasText: 'on-call' })).toBeVisible();
  expect(await page.content()).not.toContain(secret);
});

test('who silences alerts sees that it holds, and ends it', async ({ signedIn: page }) => {
  await page.goto('/account/silences');
  await page.getByRole('button', { name: t.silences.add() }).click();
  await page.getByRole('dialog').getByLabel(t.silences.reason()).fill('new disks');
  await page.getByRole('dialog').getByRole('button', { name: t.silences.add() }).click();

  const silence = page.getByRole('listitem').filter({ hasText: 'new disks' });
  await expect(silence).toContainText(t.silences.active());
  await silence.getByRole('button', { name: t.silences.remove() }).click();
  await page.getByRole('dialog').getByRole('button', { name: t.silences.deleteAction() }).click();
  await expect(page.getByRole('heading', { name: t.silences.none() })).toBeVisible();
});

test('what was done stands in the audit log, with who did it', async ({ signedIn: page, account, site }) => {
  const server = await site.server(account, 'audited');
  await site.call('DELETE', `/servers/${server.id}`, account.token);

  await page.goto('/account/audit');

  const deletion = page
    .getByRole('row')
    .filter({ hasText: 'audited' })
    .filter({ hasText: t.plain(t.audit.deletedServer({ name: 'audited' })) });
  await expect(deletion).toContainText(account.username);
});

test('how long an account is there is a date, on its first day too', async ({ signedIn: page, account, site }) => {
  const { created_at } = await site.call<{ created_at: string }>('GET', '/auth/me', account.token);
  await page.goto('/account');

  const since = page.getByText(t.plain(t.account.since()).trim());
  await expect(since).toBeVisible();
  await expect(since).toContainText(String(new Date(created_at).getFullYear()));
  await expect(since).not.toContainText(/\d:\d\d/);
});

test('a channel is added on a low screen without scrolling for the button', async ({ signedIn: page }) => {
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.goto('/account/notifications');
  await page.getByRole('main').getByRole('button', { name: t.channels.add() }).first().click();
  const dialog = page.getByRole('dialog');

  for (const height of [900, 600]) {
    await page.setViewportSize({ width: 1440, height });
    await expect(dialog.getByRole('button', { name: t.channels.add() })).toBeInViewport({ ratio: 1 });
    await expect(dialog.getByRole('button', { name: t.app.cancel(), exact: true })).toBeInViewport({ ratio: 1 });
  }
});
