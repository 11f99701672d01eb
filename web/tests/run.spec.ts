import { join } from 'node:path';
import { hold } from './support/answer.ts';
import { serverWith, sshKey } from './support/signing.ts';
import { expect, test } from './support/test.ts';
import * as t from './support/texts.ts';

test('a command runs on many servers at once, with what it came to on each', async ({
  signedIn: page,
  account,
  site,
}) => {
  const one = await site.server(account, 'alpha', ['web']);
  const two = await site.server(account, 'beta', ['web']);
  const other = await site.server(account, 'gamma', ['db']);
  const closed = await site.server(account, 'delta', ['web']);
  for (const server of [one, two, other]) await site.agent(account, server, '--commands', 'on');
  await site.agent(account, closed);
  await page.goto('/run');

  const servers = page.getByRole('region', { name: t.run.serversTitle() });
  await expect(servers).toContainText(t.commandParts.unablePolicy());
  await servers.getByRole('group', { name: t.run.byTag() }).getByRole('button', { name: 'web' }).click();
  await expect(servers.getByRole('checkbox', { name: 'alpha' })).toBeChecked();
  await expect(servers.getByRole('checkbox', { name: 'gamma' })).not.toBeChecked();
  await expect(servers.getByRole('checkbox', { name: 'delta' })).toBeHidden();
  // Each agent has a directory of its own; only what differs tells the servers apart.
  const once = join(site.directory, site.unique('only-once'));
  await page.getByRole('textbox', { name: t.run.command() }).fill(`echo "pid $PPID"; mkdir ${once}`);
  await page.getByRole('button', { name: t.run.runOn({ count: 2 }) }).click();
  await expect(page.getByRole('dialog')).toContainText(t.run.runsWhere({ servers: 'alpha and beta' }));
  await page
    .getByRole('dialog')
    .getByRole('button', { name: t.run.runOn({ count: 2 }) })
    .click();

  // One of them made the directory, the other found it there.
  await expect(page.getByText(t.run.doneOf({ done: 2, total: 2 }))).toBeVisible();
  await expect(page.getByText(t.run.failedOn({ count: 1 }))).toBeVisible();
  await expect(page.getByRole('row', { name: t.commandParts.succeeded() })).toHaveCount(1);
  await expect(page.getByRole('row', { name: t.commandParts.failed() })).toHaveCount(1);
  await expect(page.getByRole('row', { name: 'gamma' })).toBeHidden();
  await page.getByRole('row', { name: t.commandParts.failed() }).getByRole('button').click();
  await expect(page.getByRole('dialog')).toContainText('File exists');
  await page.keyboard.press('Escape');
  await expect(page.getByRole('dialog')).toBeHidden();
  const address = page.url();

  await page.goto('/run');
  await page.getByRole('region', { name: t.run.earlier() }).getByRole('link').first().click();
  await expect(page).toHaveURL(address);
  await page.getByRole('button', { name: t.run.byOutput() }).click();
  await expect(page.getByText('File exists')).toBeVisible();
});

test('a tag leads to its servers at the top, and tags beyond ten are shown whole when asked for', async ({
  signedIn: page,
  account,
  site,
}) => {
  for (let index = 10; index < 16; index += 1) await site.server(account, `first-${index}`, [`tag-${index}`]);
  for (let index = 20; index < 26; index += 1) await site.server(account, `other-${index}`, [`tag-${index}`]);
  const [one, two] = [await site.server(account, 'early'), await site.server(account, 'late', ['tag-25'])];
  for (const server of [one, two]) await site.agent(account, server, '--commands', 'on');
  await page.goto('/run');
  const servers = page.getByRole('region', { name: t.run.serversTitle() });
  const tags = servers.getByRole('group', { name: t.run.byTag() });
  const names = servers.getByRole('group', { name: t.run.list() }).getByRole('checkbox');
  await expect(names).toHaveCount(2);
  await expect(names.first()).toHaveAccessibleName(/early/);
  await expect(tags.getByRole('button')).toHaveCount(11);

  await tags.getByRole('button', { name: t.run.moreTags({ count: 2 }) }).click();
  await tags.getByRole('button', { name: 'tag-25' }).click();
  await tags.getByRole('button', { name: t.run.fewerTags() }).click();

  await expect(names.first()).toHaveAccessibleName(/late/);
  await expect(names.first()).toBeChecked();
  await expect(tags.getByRole('button', { name: 'tag-25' })).toBeVisible();
  await expect(tags.getByRole('button', { name: t.run.moreTags({ count: 1 }) })).toBeVisible();
  const scrolls = await tags.evaluate((element) => element.scrollHeight > element.clientHeight + 1);
  expect(scrolls).toBe(false);
});

test('a server that goes while it is picked is left out, and runs with the others when it is back', async ({
  signedIn: page,
  account,
  site,
}) => {
  const [here, gone] = [await site.server(account, 'alpha'), await site.server(account, 'beta')];
  await site.agent(account, here, '--commands', 'on');
  const agent = await site.agent(account, gone, '--commands', 'on');
  await page.goto('/run');
  const servers = page.getByRole('region', { name: t.run.serversTitle() });
  for (const name of ['alpha', 'beta']) await servers.getByRole('checkbox', { name }).check();
  await page.getByRole('textbox', { name: t.run.command() }).fill('uptime');
  await expect(page.getByRole('button', { name: t.run.runOn({ count: 2 }) })).toBeEnabled();

  const row = servers.getByRole('checkbox', { name: 'beta' });
  await row.focus();

  await agent.end('SIGTERM');

  await expect(page.getByText(t.run.leftOut({ count: 1 }))).toBeVisible();
  await expect(page.getByRole('button', { name: t.run.runOn({ count: 1 }) })).toBeEnabled();
  // It stays where it is, with the word why, and is none of those that are picked together.
  await expect(row).toHaveAccessibleName(new RegExp(t.commandParts.unableOffline()));
  await expect(row).toBeFocused();
  await expect(row).toBeChecked();
  const every = servers.getByRole('checkbox', { name: t.run.all({ count: 1 }), exact: true });
  await expect(every).toBeChecked();
  // Picked alone it is left out as well, and nothing runs.
  await servers.getByRole('checkbox', { name: 'alpha' }).uncheck();
  await expect(page.getByText(t.run.leftOut({ count: 1 }))).toBeVisible();
  await expect(page.getByRole('button', { name: t.run.run(), exact: true })).toBeDisabled();
  await every.check();
  await row.focus();

  await site.agent(account, gone, '--commands', 'on');

  await expect(page.getByText(t.run.leftOut({ count: 1 }))).toBeHidden();
  await expect(row).toBeFocused();
  await expect(row).not.toHaveAccessibleName(new RegExp(t.commandParts.unableOffline()));
  await page.getByRole('button', { name: t.run.runOn({ count: 2 }) }).click();
  await page
    .getByRole('dialog')
    .getByRole('button', { name: t.run.runOn({ count: 2 }) })
    .click();
  await expect(page.getByText(t.run.doneOf({ done: 2, total: 2 }))).toBeVisible();
});

test('where no agent runs commands, nothing can be picked and it is said why', async ({
  signedIn: page,
  account,
  site,
}) => {
  await site.server(account, 'waiting');

  await page.goto('/run');

  await expect(page.getByText(t.commandParts.unablePending())).toBeVisible();
  await page.getByRole('textbox', { name: t.run.command() }).fill('uptime');
  await expect(page.getByRole('button', { name: t.run.run(), exact: true })).toBeDisabled();
});

test('what is run again before the list of servers has arrived is signed where they ask for that', async ({
  signedIn: page,
  account,
  site,
}) => {
  const server = await serverWith(site, account, 'alpha', [sshKey(site, 'ada').line]);
  const body = { command: 'uptime', server_ids: [server.id] };
  const { id } = await site.call<{ id: string }>('POST', '/commands', account.token, body);
  const answer = await hold(page, '**/api/v1/servers?*');
  await page.goto(`/run/${id}`);

  await page.getByRole('button', { name: t.run.againOnBad({ count: 1 }) }).click();
  answer();

  await expect(page.getByRole('dialog', { name: t.signing.titleCommand() })).toBeVisible();
});
