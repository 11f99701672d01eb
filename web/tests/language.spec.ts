import { expect, test } from './support/test.ts';
import * as t from './support/texts.ts';

test.describe('in a browser that prefers German', () => {
  test.use({ locale: 'de-DE' });

  test('the interface is German', async ({ page }) => {
    const signIn = await t.spoken('de', () => t.signIn.signIn());

    await page.goto('/sign-in');

    await expect(page.locator('html')).toHaveAttribute('lang', 'de');
    await expect(page.getByRole('heading', { name: signIn })).toBeVisible();
  });
});

test('a language is chosen in the account, and stays chosen', async ({ signedIn: page }) => {
  const german = await t.spoken('de', () => ({ language: t.account.language(), username: t.account.username() }));
  await page.goto('/account');
  await expect(page.locator('html')).toHaveAttribute('lang', 'en');

  await page.getByLabel(t.account.language(), { exact: true }).selectOption('de');
  await expect(page.getByLabel(german.username, { exact: true })).toBeVisible();
  await page.reload();
  await expect(page.getByLabel(german.username, { exact: true })).toBeVisible();
  await expect(page.locator('html')).toHaveAttribute('lang', 'de');

  await page.getByLabel(german.language, { exact: true }).selectOption('');
  await expect(page.getByLabel(t.account.username(), { exact: true })).toBeVisible();
});

test('the clock that is chosen in the account is that of every page', async ({ signedIn: page }) => {
  const entry = page.getByRole('row').nth(1);
  await page.goto('/account/audit');
  await expect(entry).toContainText(/\d:\d\d.*[AP]M/);

  await page.goto('/account');
  await page.getByLabel(t.account.clock(), { exact: true }).selectOption('24');
  await page.goto('/account/audit');

  await expect(entry).toContainText(/\d:\d\d/);
  await expect(entry).not.toContainText(/[AP]M/);
});
