import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { enter, expect, tab, test, type Control } from './support/test.ts';

/** A command that goes on until the file is there. */
const until = (file: string) => `until [ -e '${file}' ]; do sleep 0.1; done`;

async function open(page: Page, control: Control): Promise<void> {
  await enter(page, control.account, `/servers/${control.server.id}`);
  await tab(page, 'Commands').click();
}

async function run(page: Page, command: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Command' }).fill(command);
  await page.getByRole('button', { name: 'Run', exact: true }).click();
}

test('what a command writes arrives before it ends', async ({ page, control, site }) => {
  const file = join(site.directory, site.unique('go'));
  await open(page, control);

  await run(page, `echo first; echo wrong >&2; ${until(file)}; echo last; exit 3`);

  const card = page.getByRole('region', { name: 'Command', exact: true });
  await expect(card.getByRole('region', { name: 'Output' })).toContainText('first');
  await expect(card.getByRole('region', { name: 'Output' })).toContainText('wrong');
  await expect(card.getByText('Running')).toBeVisible();
  await expect(card.getByText('last', { exact: true })).toBeHidden();
  writeFileSync(file, '');
  await expect(card.getByRole('region', { name: 'Output' })).toContainText('last');
  await expect(card.getByText('Failed')).toBeVisible();
  await expect(card.getByText('exit code 3')).toBeVisible();
});

test('a command is cancelled, and what it had written stays', async ({ page, control }) => {
  await open(page, control);
  await run(page, 'echo begun; sleep 1000');
  const card = page.getByRole('region', { name: 'Command', exact: true });
  await expect(card.getByRole('region', { name: 'Output' })).toContainText('begun');

  await card.getByRole('button', { name: 'Cancel' }).click();

  await expect(card.getByText('Cancelled')).toBeVisible();
  await expect(card.getByRole('region', { name: 'Output' })).toContainText('begun');
  await expect(card.getByRole('button', { name: 'Cancel' })).toBeHidden();
});

test('what was run stands in the history, is shared by its address, and is run again', async ({
  page,
  control,
  site,
}) => {
  const word = site.unique('word');
  await open(page, control);
  await run(page, `echo ${word}`);
  const card = page.getByRole('region', { name: 'Command', exact: true });
  await expect(card.getByText('Succeeded')).toBeVisible();
  const address = page.url();

  // Somebody opens the address that was shared.
  await page.goto('/');
  await page.goto(address);
  await expect(card.getByRole('region', { name: 'Output' })).toContainText(word);
  const past = page.getByRole('region', { name: 'History' }).getByRole('link', { name: `echo ${word}` });
  await expect(past).toHaveCount(1);
  await expect(past).toContainText(control.account.username);
  await card.getByRole('button', { name: 'Run again' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Run again' }).click();

  await expect(past).toHaveCount(2);
  await expect(page).not.toHaveURL(address);
  await expect(card.getByText('Succeeded')).toBeVisible();
});

test('a command that is running is still shown after the page was loaded anew', async ({ page, control, site }) => {
  const file = join(site.directory, site.unique('go'));
  await open(page, control);
  await run(page, `echo early; ${until(file)}; echo late`);
  const output = page.getByRole('region', { name: 'Output' });
  await expect(output).toContainText('early');

  await page.reload();

  await expect(output).toContainText('early');
  writeFileSync(file, '');
  await expect(output).toContainText('late');
});

test('a command gets the input that it is given', async ({ page, control }) => {
  await open(page, control);

  await page.getByRole('checkbox', { name: 'Give it input' }).check();
  await page.getByRole('textbox', { name: 'Input' }).fill('one\ntwo\n');
  await run(page, 'tac');

  await expect(page.getByRole('region', { name: 'Output' })).toContainText(/two\s*one/);
});

test('a time limit that the service does not know is refused at its field', async ({ page, control }) => {
  await open(page, control);

  const limit = page.getByLabel('Time limit');
  await limit.fill('5000');
  await run(page, 'true');

  // The browser, or the service: somebody says it there.
  const isTold = () => limit.evaluate((field: HTMLInputElement) => field.matches(':invalid, [aria-invalid=true]'));
  await expect.poll(isTold).toBe(true);
  await expect(page.getByRole('region', { name: 'Output' })).toBeHidden();
});

test('where the agent runs no commands, the page says who decides that and how', async ({
  signedIn: page,
  account,
  site,
}) => {
  const server = await site.server(account);
  const agent = await site.agent(account, server);

  await page.goto(`/servers/${server.id}/commands`);

  const why = page.getByRole('region', { name: 'Why this is not possible' });
  await expect(why).toContainText('does not run commands');
  await expect(why).toContainText('--commands on');
  await expect(page.getByRole('textbox', { name: 'Command' })).toBeHidden();
  await expect(page.getByRole('main').getByRole('link', { name: 'Run a command' })).toBeHidden();
  await tab(page, 'Settings').click();
  await expect(page.getByRole('listitem').filter({ hasText: 'commands' }).first()).toContainText('refused');

  // Its owner allows it: the page notices by itself.
  await tab(page, 'Commands').click();
  await agent.end();
  await site.agent(account, server, '--commands', 'on');
  await expect(page.getByRole('textbox', { name: 'Command' })).toBeVisible();
});
