import { enter, expect, FROM_A_SHELL, tab, test } from './support/test.ts';
import * as t from './support/texts.ts';

test('what is typed in a terminal reaches the shell, and its answer comes back', async ({ page, control }) => {
  test.slow();
  await enter(page, control.account, `/servers/${control.server.id}`);
  await tab(page, t.server.terminal()).click();
  // The screen reader's copy of the screen is text; what others see is painted.
  await page.getByRole('checkbox', { name: t.terminal.screenReader() }).check();
  await page.getByRole('button', { name: t.terminal.openTerminal() }).click();
  const terminal = page.getByRole('region', { name: t.terminal.label({ name: control.server.name }) });
  await expect(terminal.getByText(t.terminal.open(), { exact: true })).toBeVisible();

  await page.keyboard.type('echo $((6 * 7))hi\n');

  await expect(terminal.locator('.xterm-accessibility')).toContainText('42hi', FROM_A_SHELL);

  await page.keyboard.type('exit\n');
  await expect(terminal.getByText(t.terminal.ended(), { exact: true })).toBeVisible();
  await expect(terminal.getByRole('button', { name: t.terminal.openNew() })).toBeVisible();
});

test('keys belong to the terminal while it has the focus, and it can be left by one', async ({ page, control }) => {
  await enter(page, control.account, `/servers/${control.server.id}/terminal`);
  await page.getByRole('button', { name: t.terminal.openTerminal() }).click();
  const terminal = page.getByRole('region', { name: t.terminal.label({ name: control.server.name }) });
  await expect(terminal.getByText(t.terminal.open(), { exact: true })).toBeVisible();

  await page.keyboard.type('ga/?');

  await expect(page).toHaveURL(/terminal$/);
  await expect(page.getByRole('dialog')).toBeHidden();
  await page.keyboard.press('Control+F6');
  await expect(terminal.getByRole('button', { name: t.terminal.end() })).toBeFocused();
});

test('a terminal is refused where the agent does not allow one', async ({ signedIn: page, account, site }) => {
  const server = await site.server(account);
  await site.agent(account, server);

  await page.goto(`/servers/${server.id}/terminal`);

  const why = page.getByRole('region', { name: t.unable.why() });
  await expect(why).toContainText(t.unable.noTerminal());
  await expect(why).toContainText('--terminal on');
  await expect(page.getByRole('button', { name: t.terminal.openTerminal() })).toBeHidden();
});
