import type { Locator, Page } from '@playwright/test';
import { enter, expect, forgive, FROM_A_SHELL, tab, test, type Control } from './support/test.ts';
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

test('a terminal continues after the network was away, and nothing of it is missing', async ({
  page,
  control,
  faults,
}) => {
  test.slow();
  const terminal = await opened(page, control);
  await page.keyboard.type('secret=41; echo rea""dy\n');
  await expect(terminal.locator('.xterm-accessibility')).toContainText('ready', FROM_A_SHELL);

  await page.context().setOffline(true);
  await expect(terminal.getByText(t.terminal.reconnecting(), { exact: true })).toBeVisible();
  await page.context().setOffline(false);
  await expect(terminal.getByText(t.terminal.open(), { exact: true })).toBeVisible(FROM_A_SHELL);
  await page.keyboard.type('echo $((secret + 1))hi\n');

  await expect(terminal.locator('.xterm-accessibility')).toContainText('42hi', FROM_A_SHELL);
  // It may have been tried while the network was away.
  forgive(faults, /^WebSocket connection to .* failed: .*ERR_INTERNET_DISCONNECTED$/);
});

test('a terminal is resumed after the page was loaded again, and its ticket goes with its end', async ({
  page,
  control,
}) => {
  test.slow();
  let terminal = await opened(page, control);
  await page.keyboard.type('secret=41; echo rea""dy\n');
  await expect(terminal.locator('.xterm-accessibility')).toContainText('ready', FROM_A_SHELL);
  const tickets = () => page.evaluate(() => Object.keys(sessionStorage).filter((name) => name.startsWith('terminal:')));
  expect(await tickets()).toHaveLength(1);

  await page.reload();
  await page.getByRole('checkbox', { name: t.terminal.screenReader() }).check();
  await page.getByRole('button', { name: t.terminal.resume() }).click();
  terminal = page.getByRole('region', { name: t.terminal.label({ name: control.server.name }) });
  // What it showed before is there again.
  await expect(terminal.locator('.xterm-accessibility')).toContainText('ready', FROM_A_SHELL);
  await page.keyboard.type('echo $((secret + 1))hi\n');
  await expect(terminal.locator('.xterm-accessibility')).toContainText('42hi', FROM_A_SHELL);

  await terminal.getByRole('button', { name: t.terminal.end() }).click();
  await expect(page.getByRole('button', { name: t.terminal.openTerminal() })).toBeVisible();
  await expect(page.getByRole('button', { name: t.terminal.resume() })).toBeHidden();
  expect(await tickets()).toEqual([]);
});

test('a terminal that another tab has resumed says so and does not come back', async ({ page, control }) => {
  test.slow();
  const terminal = await opened(page, control);
  const kept = () => Object.entries(sessionStorage).find(([name]) => name.startsWith('terminal:'));
  // It comes after the terminal.
  const ticket = await page.waitForFunction(kept);
  const other = await page.context().newPage();
  await other.goto(`/servers/${control.server.id}/terminal`);
  await other.evaluate(([name, value]) => sessionStorage.setItem(name, value), (await ticket.jsonValue()) ?? ['', '']);
  await other.reload();

  await other.getByRole('button', { name: t.terminal.resume() }).click();

  await expect(terminal.getByRole('alert')).toContainText(t.terminal.elsewhere(), FROM_A_SHELL);
  const resumed = other.getByRole('region', { name: t.terminal.label({ name: control.server.name }) });
  await expect(resumed.getByText(t.terminal.open(), { exact: true })).toBeVisible();
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

/** A terminal whose screen can be read. */
async function opened(page: Page, control: Control): Promise<Locator> {
  await enter(page, control.account, `/servers/${control.server.id}/terminal`);
  await page.getByRole('checkbox', { name: t.terminal.screenReader() }).check();
  await page.getByRole('button', { name: t.terminal.openTerminal() }).click();
  const terminal = page.getByRole('region', { name: t.terminal.label({ name: control.server.name }) });
  await expect(terminal.getByText(t.terminal.open(), { exact: true })).toBeVisible();
  return terminal;
}
