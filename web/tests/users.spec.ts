// What an administrator does to accounts, and how somebody comes in by an invitation.
import type { Page } from '@playwright/test';
import { expectAccessible } from './support/accessible.ts';
import { Site, type Account } from './support/site.ts';
import { enter, expect, expectFits, test } from './support/test.ts';
import * as t from './support/texts.ts';

/** A service of its own has an administrator: its first account. */
async function administer(page: Page, site: Site): Promise<Account> {
  const admin = await site.account();
  await page.goto(site.origin);
  await enter(page, admin, `${site.origin}/account/users`);
  await expect(page.getByRole('heading', { name: t.users.title(), exact: true })).toBeVisible();
  return admin;
}

function row(page: Page, account: Account) {
  return page.getByRole('row').filter({ hasText: account.email });
}

test('an invitation makes one account where registration is closed', async ({ page, origins, browser }) => {
  const site = await Site.start('127.0.0.1:0', '--registration', 'closed');
  origins.push(site.origin);
  const admin = await administer(page, site);
  await expect(page.getByRole('columnheader', { name: t.users.secondFactors() })).toBeVisible();
  await expect(page.getByRole('row').filter({ hasText: admin.email })).toContainText(t.users.noFactor());
  await page.getByRole('button', { name: t.users.invite() }).click();
  await page.getByRole('dialog').getByLabel(t.users.email()).fill('grace@example.com');
  await page.getByRole('dialog').getByRole('button', { name: t.users.createLink() }).click();
  const shown = page.getByRole('dialog', { name: t.users.linkTitle() });
  const link = await shown.getByLabel(t.users.link(), { exact: true }).innerText();
  await expectAccessible(page);
  // What is shown only once is not lost by a slip.
  await page.keyboard.press('Escape');
  await shown.getByRole('button', { name: t.users.linkSent() }).click();
  await expect(page.getByText('grace@example.com')).toBeVisible();

  const context = await browser.newContext();
  const guest = await context.newPage();
  await guest.goto(link.replace(/^https?:\/\/[^/]+/, site.origin));
  await expect(guest.getByRole('heading', { name: t.signIn.invited() })).toBeVisible();
  await guest.getByLabel(t.signIn.username(), { exact: true }).fill('grace');
  await guest.getByLabel(t.signIn.email(), { exact: true }).fill('grace@example.com');
  for (const field of [t.signIn.password(), t.signIn.confirm()])
    await guest.getByLabel(field, { exact: true }).fill('correct horse battery');
  await guest.getByRole('button', { name: t.signIn.createAccount(), exact: true }).click();
  await expect(guest).toHaveURL(/\/$/);
  await guest.goto(`${site.origin}/account/users`);
  await expect(guest.getByRole('heading', { name: t.app.notFound() })).toBeVisible();
  await context.close();

  await page.reload();
  await expect(page.getByText(t.users.noInvitations())).toBeVisible();
  await expect(page.getByRole('row').filter({ hasText: 'grace@example.com' })).toBeVisible();
  // Before the service, so that no page looks for a service that is gone.
  await page.close();
  await site.stop();
});

test('a disabled account is out, and a deleted one leaves its servers to the chosen account', async ({
  page,
  alone,
}) => {
  const admin = await administer(page, alone);
  const colleague = await alone.account();
  const server = await alone.server(colleague, 'left-behind');
  await page.reload();
  await expect(row(page, colleague)).toBeVisible();
  await expectAccessible(page);

  await row(page, colleague)
    .getByRole('button', { name: t.users.actOn({ action: t.users.disable(), name: colleague.username }) })
    .click();
  await page.getByRole('dialog').getByRole('button', { name: t.users.disable() }).click();
  await expect(row(page, colleague).getByText(t.users.disabled(), { exact: true })).toBeVisible();
  const refused = await alone.call('GET', '/auth/me', colleague.token).catch((error: unknown) => String(error));
  expect(refused).toContain('401');

  await row(page, colleague)
    .getByRole('button', { name: t.users.deleteTitle({ name: colleague.username }) })
    .click();
  const dialog = page.getByRole('dialog', { name: t.users.deleteTitle({ name: colleague.username }) });
  await expect(dialog.getByLabel(t.users.heir({ count: 1 }))).toHaveValue(/.+/);
  await expectAccessible(page);
  await dialog.getByRole('button', { name: t.users.deleteAccount() }).click();
  await expect(row(page, colleague)).toBeHidden();

  const moved = await alone.call<{ name: string }>('GET', `/servers/${server.id}`, admin.token);
  expect(moved.name).toBe('left-behind');
  await page.setViewportSize({ width: 390, height: 844 });
  await expectFits(page);
});

test('an administrator is made and unmade, and the search finds one of many', async ({ page, alone }) => {
  await administer(page, alone);
  const one = await alone.account();
  const other = await alone.account();
  await page.reload();

  await page.getByRole('searchbox', { name: t.users.search() }).fill(one.username);
  await expect(row(page, other)).toBeHidden();
  const action = (action: string) =>
    row(page, one).getByRole('button', { name: t.users.actOn({ action, name: one.username }) });
  await action(t.users.promote()).click();
  await page.getByRole('dialog').getByRole('button', { name: t.users.promote() }).click();
  await expect(row(page, one).getByText(t.users.administrator(), { exact: true })).toBeVisible();
  await action(t.users.demote()).click();
  await expect(row(page, one).getByText(t.users.administrator(), { exact: true })).toBeHidden();
  await expect(action(t.users.promote())).toBeFocused();
});

test('one deletes ones own account with the password', async ({ signedIn: page, account, site }) => {
  await page.goto('/account');

  await page.getByRole('button', { name: t.users.deleteOwn() }).click();
  const dialog = page.getByRole('dialog', { name: t.users.deleteOwn() });
  await dialog.getByLabel(t.users.password(), { exact: true }).fill('a wrong password');
  await dialog.getByRole('button', { name: t.users.deleteAccount() }).click();
  await expect(dialog.getByText(t.users.wrongPassword())).toBeVisible();
  await expectAccessible(page);
  await dialog.getByLabel(t.users.password(), { exact: true }).fill(account.password);
  await dialog.getByRole('button', { name: t.users.deleteAccount() }).click();

  await expect(page).toHaveURL(/\/sign-in/);
  const refused = await site.call('GET', '/auth/me', account.token).catch((error: unknown) => String(error));
  expect(refused).toContain('401');
});
