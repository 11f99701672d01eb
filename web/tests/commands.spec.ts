import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { enter, expect, FROM_A_SHELL, tab, test, type Control } from './support/test.ts';
import * as t from './support/texts.ts';

/** A command that runs until the file is there. */
const until = (file: string) => `until [ -e '${file}' ]; do sleep 0.1; done`;

async function open(page: Page, control: Control): Promise<void> {
  await enter(page, control.account, `/servers/${control.server.id}`);
  await tab(page, t.server.commands()).click();
}

async function run(page: Page, command: string): Promise<void> {
  await page.getByRole('textbox', { name: t.commands.command() }).fill(command);
  await page.getByRole('button', { name: t.commands.run(), exact: true }).click();
}

test('what a command writes arrives before it ends', async ({ page, control, site }) => {
  const file = join(site.directory, site.unique('go'));
  await open(page, control);

  await run(page, `echo first; echo wrong >&2; ${until(file)}; echo last; exit 3`);

  const card = page.getByRole('region', { name: t.commands.command(), exact: true });
  await expect(card.getByRole('region', { name: t.commandParts.output() })).toContainText('first');
  await expect(card.getByRole('region', { name: t.commandParts.output() })).toContainText('wrong');
  await expect(card.getByText(t.commandParts.running())).toBeVisible();
  await expect(card.getByText('last', { exact: true })).toBeHidden();
  writeFileSync(file, '');
  await expect(card.getByRole('region', { name: t.commandParts.output() })).toContainText('last');
  await expect(card.getByText(t.commandParts.failed())).toBeVisible();
  await expect(card.getByText(t.commandParts.exitCode({ code: '3' }))).toBeVisible();
});

test('a command is cancelled, and what it had written stays', async ({ page, control }) => {
  await open(page, control);
  await run(page, 'echo begun; sleep 1000');
  const card = page.getByRole('region', { name: t.commands.command(), exact: true });
  await expect(card.getByRole('region', { name: t.commandParts.output() })).toContainText('begun');

  await card.getByRole('button', { name: t.commandParts.cancel() }).click();

  await expect(card.getByText(t.commandParts.cancelled())).toBeVisible();
  await expect(card.getByRole('region', { name: t.commandParts.output() })).toContainText('begun');
  await expect(card.getByRole('button', { name: t.commandParts.cancel() })).toBeHidden();
});

test('what was run stands in the history, is shared by its address, and is run again', async ({
  page,
  control,
  site,
}) => {
  const word = site.unique('word');
  await open(page, control);
  await run(page, `echo ${word}`);
  const card = page.getByRole('region', { name: t.commands.command(), exact: true });
  await expect(card.getByText(t.commandParts.succeeded())).toBeVisible();
  const address = page.url();

  // Somebody opens the address that was shared.
  await page.goto('/');
  await page.goto(address);
  await expect(card.getByRole('region', { name: t.commandParts.output() })).toContainText(word);
  const past = page.getByRole('region', { name: t.commands.history() }).getByRole('link', { name: `echo ${word}` });
  await expect(past).toHaveCount(1);
  await expect(past).toContainText(control.account.username);
  await card.getByRole('button', { name: t.commands.again() }).click();
  await page.getByRole('dialog').getByRole('button', { name: t.commands.again() }).click();

  await expect(past).toHaveCount(2);
  await expect(page).not.toHaveURL(address);
  await expect(card.getByText(t.commandParts.succeeded())).toBeVisible();
});

test('a command that is running is still shown after the page was reloaded', async ({ page, control, site }) => {
  const file = join(site.directory, site.unique('go'));
  await open(page, control);
  await run(page, `echo early; ${until(file)}; echo late`);
  const output = page.getByRole('region', { name: t.commandParts.output() });
  await expect(output).toContainText('early');

  await page.reload();

  await expect(output).toContainText('early');
  writeFileSync(file, '');
  await expect(output).toContainText('late');
});

test('a command gets the input that it is given', async ({ page, control }) => {
  await open(page, control);

  await page.getByRole('checkbox', { name: t.commands.giveInput() }).check();
  await page.getByRole('textbox', { name: t.commands.input() }).fill('one\ntwo\n');
  await run(page, 'tac');

  await expect(page.getByRole('region', { name: t.commandParts.output() })).toContainText(/two\s*one/);
});

test('a time limit that the service does not know is refused at its field', async ({ page, control }) => {
  await open(page, control);

  const limit = page.getByLabel(t.commandParts.timeLimit());
  await limit.fill('5000');
  await run(page, 'true');

  // The browser, or the service: somebody says it there.
  const isTold = () => limit.evaluate((field: HTMLInputElement) => field.matches(':invalid, [aria-invalid=true]'));
  await expect.poll(isTold).toBe(true);
  await expect(page.getByRole('region', { name: t.commandParts.output() })).toBeHidden();
});

test('where the agent runs no commands, the page says who decides that and how', async ({
  signedIn: page,
  account,
  site,
}) => {
  const server = await site.server(account);
  const agent = await site.agent(account, server);

  await page.goto(`/servers/${server.id}/commands`);

  const why = page.getByRole('region', { name: t.unable.why() });
  await expect(why).toContainText(t.unable.noCommands());
  await expect(why.getByLabel(t.allow.line())).toHaveText(
    `curl -fsSL ${site.origin}/install.sh | sudo sh -s -- --commands on`,
  );
  await expect(page.getByRole('textbox', { name: t.commands.command() })).toBeHidden();
  await expect(page.getByRole('main').getByRole('link', { name: t.commands.runCommand() })).toBeHidden();
  await tab(page, t.server.settings()).click();
  await expect(page.getByRole('listitem').filter({ hasText: 'commands' }).first()).toContainText(t.settings.refused());

  // Its owner allows it: the page notices by itself.
  await tab(page, t.server.commands()).click();
  await agent.end();
  const allowing = await site.agent(account, server, '--commands', 'on');
  const field = page.getByRole('textbox', { name: t.commands.command() });
  await expect(field).toBeVisible();

  // It goes away, and what was written waits for it.
  await field.fill('uptime');
  await allowing.end();
  await expect(why).toContainText(t.unable.offline());
  await expect(field).toHaveValue('uptime');
  await expect(field).toBeFocused();
  await expect(page.getByRole('button', { name: t.app.run(), exact: true })).toBeDisabled();
  await site.agent(account, server, '--commands', 'on');
  await expect(why).toBeHidden();
  await expect(field).toHaveValue('uptime');
  await expect(page.getByRole('button', { name: t.app.run(), exact: true })).toBeEnabled();
});

test('the page notices what an agent allows that takes over from another without a pause', async ({
  signedIn: page,
  account,
  site,
}) => {
  const server = await site.server(account);
  await site.agent(account, server);
  await page.goto(`/servers/${server.id}/commands`);
  await expect(page.getByRole('region', { name: t.unable.why() })).toContainText(t.unable.noCommands());

  // The server is online all the time.
  site.startAgent(server.key, '--commands', 'on');

  await expect(page.getByRole('textbox', { name: t.commands.command() })).toBeVisible();
});

test('the end of a long output is in sight: the line that explains a failure', async ({ page, control }) => {
  await enter(page, control.account, `/servers/${control.server.id}/commands`);
  // To one stream: two pipes say nothing about which line was written first.
  const script = 'i=1; while [ $i -le 40 ]; do echo line $i; i=$((i+1)); done; echo "the last line says why"; exit 3';
  await page.getByRole('textbox', { name: t.commandParts.command() }).fill(script);
  await page.getByRole('button', { name: t.app.run(), exact: true }).click();

  const output = page.getByRole('region', { name: t.commandParts.output() });
  const last = output.getByText('the last line says why');
  await expect(last).toBeVisible(FROM_A_SHELL);
  await expect(last).toBeInViewport();
  await expect(output.getByText('line 1', { exact: true })).not.toBeInViewport();
});
