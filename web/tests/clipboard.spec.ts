// Copying where the page is not served by HTTPS and not from this machine: such a page has no clipboard to write to.
import { expect, test } from './support/test.ts';
import * as t from './support/texts.ts';

/** A name of the machine that browsers do not take for their own: see playwright.config.ts. */
const PLAIN = 'plain.test';

test('without HTTPS a key and a line of output are copied all the same', async ({ page, control, site, origins }) => {
  const origin = site.origin.replace('127.0.0.1', PLAIN);
  origins.push(origin, origin.replace('http', 'ws'));
  await page.goto(`${origin}/sign-in`);
  expect(await page.evaluate(() => [isSecureContext, 'clipboard' in navigator])).toEqual([false, false]);
  await page.getByLabel(t.signIn.usernameOrEmail()).fill(control.account.username);
  await page.getByLabel(t.signIn.password(), { exact: true }).fill(control.account.password);
  await page.getByRole('button', { name: t.signIn.signIn(), exact: true }).click();
  const search = page.getByRole('searchbox', { name: t.fleet.search() });
  await expect(search).toBeVisible();

  // In a dialog, where nothing outside of it can be selected.
  await page.goto(`${origin}/servers/${control.server.id}/keys`);
  await page.getByRole('button', { name: t.keys.create() }).click();
  await page.getByRole('dialog').getByRole('button', { name: t.keys.submit() }).click();
  const shown = page.getByRole('dialog', { name: t.keys.newKey() });
  const key = await shown.getByLabel(t.keys.apiKey(), { exact: true }).innerText();
  const copied = shown.getByRole('button', { name: t.ui.copied() }).waitFor();
  await shown.getByRole('button', { name: t.ui.copy() }).first().click();
  await copied;
  await shown.getByRole('button', { name: t.keys.saved() }).click();
  await page.goto(origin);
  await search.focus();
  await page.keyboard.press('Control+V');
  await expect(search).toHaveValue(key);

  // What is not shown as one text is copied by a field that nobody sees, and the focus stays.
  await page.goto(`${origin}/servers/${control.server.id}/commands`);
  await page.getByRole('textbox', { name: t.commandParts.command() }).fill('echo by hand');
  await page.getByRole('button', { name: t.commands.run(), exact: true }).click();
  const card = page.getByRole('region', { name: t.commandParts.command(), exact: true });
  await expect(card.getByText(t.commandParts.succeeded())).toBeVisible();
  // Its name is another one for two seconds.
  const copy = card.getByRole('button', { name: /^Cop(y|ied)/ }).last();
  await copy.click();
  await expect(copy).toBeFocused();
  await page.goto(origin);
  await search.focus();
  await page.keyboard.press('Control+V');
  await expect(search).toHaveValue(/by hand/);
});
