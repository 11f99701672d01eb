import { createHmac } from 'node:crypto';
import type { Page } from '@playwright/test';
import { expectAccessible } from './support/accessible.ts';
import { expect, forgive, navigation, test } from './support/test.ts';
import { addAuthenticator, atLocalhost } from './support/authenticator.ts';
import { Site, type Account } from './support/site.ts';
import * as t from './support/texts.ts';

/** The code that an app with this secret shows, or `steps` of 30 s later. */
function code(secret: string, steps = 0): string {
  const bits = [...secret]
    .map((c) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(c).toString(2).padStart(5, '0'))
    .join('');
  const key = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
  const step = Buffer.alloc(8);
  step.writeBigInt64BE(BigInt(Math.floor(Date.now() / 30_000) + steps));
  const tag = createHmac('sha1', key).update(step).digest();
  const at = (tag.at(-1) ?? 0) & 15;
  return String((tag.readUInt32BE(at) & 0x7fff_ffff) % 1_000_000).padStart(6, '0');
}

async function fillPassword(page: Page, account: Account): Promise<void> {
  await page.getByLabel(t.signIn.usernameOrEmail()).fill(account.username);
  await page.getByLabel(t.signIn.password(), { exact: true }).fill(account.password);
  await page.getByRole('button', { name: t.signIn.signIn(), exact: true }).click();
}

async function signOut(page: Page, origin: string): Promise<void> {
  await page.goto(`${origin}/account`);
  await page.getByRole('main').getByRole('button', { name: t.account.signOut() }).click();
  await expect(page.getByLabel(t.signIn.usernameOrEmail())).toBeVisible();
}

async function makePasskey(page: Page): Promise<void> {
  await page.getByRole('button', { name: t.factors.addPasskey() }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel(t.factors.passkeyName()).fill('this laptop');
  await dialog.getByRole('button', { name: t.factors.addPasskey() }).click();
  await expect(page.getByRole('listitem').filter({ hasText: 'this laptop' })).toBeVisible();
}

test('an authenticator app is set up, asked for, used once, and replaced by a recovery code', async ({
  signedIn: page,
  account,
  site,
}) => {
  await page.goto('/account/security');
  await page.getByRole('button', { name: t.factors.setUp() }).click();
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByRole('img', { name: t.factors.qrLabel() })).toBeVisible();
  await expectAccessible(page);
  const secret = await dialog.locator('code').innerText();
  await dialog.getByLabel(t.factors.firstCode()).fill('000000');
  await dialog.getByRole('button', { name: t.factors.turnOn() }).click();
  await expect(dialog.getByLabel(t.factors.firstCode())).toHaveAccessibleDescription(t.factors.wrongOtp());
  await dialog.getByLabel(t.factors.firstCode()).fill(code(secret));
  await dialog.getByRole('button', { name: t.factors.turnOn() }).click();

  const codes = page.getByRole('list', { name: t.factors.codesLabel() }).getByRole('listitem');
  await expect(codes).toHaveCount(10);
  await expectAccessible(page);
  const recovery = await codes.first().innerText();
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: t.factors.download() }).click();
  expect((await download).suggestedFilename()).toBe('signalbox-recovery-codes.txt');
  await page.getByRole('button', { name: t.factors.savedThem() }).click();
  await expect(page.getByText(t.factors.codesLeft({ count: 10 }))).toBeVisible();

  await signOut(page, site.origin);
  await fillPassword(page, account);
  const field = page.getByLabel(t.factors.otp(), { exact: true });
  // Each code is good once. That of the next half minute is, too.
  await field.fill(code(secret, 1));
  await expectAccessible(page);
  await page.getByRole('button', { name: t.signIn.signIn(), exact: true }).click();
  await expect(navigation(page)).toBeVisible();

  await signOut(page, site.origin);
  await fillPassword(page, account);
  await field.fill('000000');
  await page.getByRole('button', { name: t.signIn.signIn(), exact: true }).click();
  await expect(field).toHaveAccessibleDescription(new RegExp(t.factors.wrongOtp()));
  await field.fill(recovery);
  await page.getByRole('button', { name: t.signIn.signIn(), exact: true }).click();
  await expect(navigation(page)).toBeVisible();
  await page.goto('/account/security');
  await expect(page.getByText(t.factors.codesLeft({ count: 9 }))).toBeVisible();
});

test('a passkey is made, and signs in without a name', async ({ page, account, site, origins }) => {
  const origin = atLocalhost(site);
  origins.push(origin);
  await addAuthenticator(page);
  await page.goto(`${origin}/sign-in?to=/account/security`);
  await fillPassword(page, account);
  await makePasskey(page);
  await expectAccessible(page);

  await signOut(page, origin);
  await page.getByRole('button', { name: t.factors.signInWithPasskey() }).click();
  await expect(navigation(page)).toContainText(account.username);

  await page.goto(`${origin}/account/security`);
  await expect(page.getByText(t.factors.meansPasskey(), { exact: false }).first()).toBeVisible();
  await page.getByRole('button', { name: t.factors.removePasskeyLabel({ name: 'this laptop' }) }).click();
  await page.getByRole('dialog').getByRole('button', { name: t.factors.remove() }).click();
  await expect(page.getByText(t.factors.noneYet())).toBeVisible();
});

test('who must have a second factor is led to it, and proves it in each session', async ({ page, origins, faults }) => {
  const site = await Site.start('127.0.0.1:0', '--second-factor', 'all');
  const origin = atLocalhost(site);
  origins.push(origin);
  await addAuthenticator(page);
  const account = await site.account();
  await page.goto(`${origin}/sign-in`);
  await fillPassword(page, account);

  await expect(page.getByText(t.factors.requiredText())).toBeVisible();
  await expectAccessible(page);
  await makePasskey(page);
  await page.getByRole('link', { name: t.factors.continueButton() }).click();
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();

  await signOut(page, origin);
  await fillPassword(page, account);
  const dialog = page.getByRole('dialog', { name: t.factors.proveTitle() });
  await expect(dialog).toBeVisible();
  await expectAccessible(page);
  await dialog.getByRole('button', { name: t.factors.usePasskey() }).click();
  await expect(dialog).toBeHidden();
  await page.goto(`${origin}/account/security`);
  await expect(page.getByRole('listitem').filter({ hasText: 'this laptop' })).toBeVisible();

  await page.close();
  await site.stop();
  // The list of alerts waits for the second factor like everything else.
  forgive(faults, /^WebSocket connection to .* 403$/);
});
