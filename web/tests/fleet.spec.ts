import { expect, tab, test, told } from './support/test.ts';
import * as t from './support/texts.ts';

test('numbers of a server change by themselves', async ({ signedIn: page, account, site }) => {
  await page.goto('/');
  const server = await site.server(account, 'alive');
  await site.agent(account, server);
  const card = page.getByRole('article').filter({ hasText: 'alive' });
  await expect(card.getByText(t.status.online())).toBeVisible();
  await expect(card).toContainText(/CPU\s*\d/);

  // Its machine has been up for longer than a moment ago: it is measured once a second.
  const shown = await card.innerText();
  await expect.poll(() => card.innerText()).not.toBe(shown);
});

test('a server that is added, renamed or deleted elsewhere is so here, without loading anything', async ({
  signedIn: page,
  account,
  site,
}) => {
  await page.goto('/');
  await expect(page.getByRole('heading', { name: t.fleet.firstRun() })).toBeVisible();

  const server = await site.server(account, 'before', ['web']);
  await expect(page.getByRole('link', { name: 'before' })).toBeVisible();
  await site.call('PUT', `/servers/${server.id}`, account.token, { name: 'after' });
  await expect(page.getByRole('link', { name: 'after' })).toBeVisible();
  await expect(page.getByRole('link', { name: 'before' })).toBeHidden();
  await site.call('DELETE', `/servers/${server.id}`, account.token);
  await expect(page.getByRole('heading', { name: t.fleet.firstRun() })).toBeVisible();
});

test('servers are narrowed by status and tag, and sorted', async ({ signedIn: page, account, site }) => {
  await page.goto('/');
  const up = await site.server(account, 'beta', ['web']);
  await site.agent(account, up);
  await site.server(account, 'alpha', ['web']);
  await site.server(account, 'gamma', ['db']);
  const names = () => page.getByRole('article').getByRole('heading').allInnerTexts();
  await expect.poll(names).toEqual(['alpha', 'beta', 'gamma']);

  await page.getByRole('button', { name: t.fleet.reverse() }).click();
  await expect.poll(names).toEqual(['gamma', 'beta', 'alpha']);
  await page.getByRole('button', { name: t.fleet.reverse() }).click();
  await page.getByRole('group', { name: t.fleet.tags() }).getByRole('button', { name: 'web' }).click();
  await expect.poll(names).toEqual(['alpha', 'beta']);
  await page
    .getByRole('group', { name: t.fleet.status() })
    .getByRole('button', { name: t.status.countedOnline() })
    .click();
  await expect.poll(names).toEqual(['beta']);
  await page.getByRole('searchbox', { name: t.fleet.search() }).fill('nothing like it');
  await page.getByRole('button', { name: t.fleet.showAll() }).click();
  await expect.poll(names).toEqual(['alpha', 'beta', 'gamma']);
});

test('a person who types its name deletes a server, and a page that shows it says so', async ({
  signedIn: page,
  context,
  account,
  site,
}) => {
  const server = await site.server(account, 'doomed');
  const other = await context.newPage();
  await other.goto(`/servers/${server.id}`);
  await expect(other.getByRole('heading', { name: 'doomed', level: 1 })).toBeVisible();
  await page.goto(`/servers/${server.id}`);
  await tab(page, t.server.settings()).click();
  await page.getByRole('button', { name: t.settings.deleteServer() }).click();

  const dialog = page.getByRole('dialog', { name: t.settings.deleteTitle({ name: 'doomed' }) });
  const sure = dialog.getByRole('button', { name: t.settings.deleteServer() });
  await expect(sure).toBeDisabled();
  await dialog.getByRole('textbox').fill('doome');
  await expect(sure).toBeDisabled();
  await dialog.getByRole('textbox').fill('doomed');
  await sure.click();

  await expect(page.getByRole('heading', { name: t.fleet.firstRun() })).toBeVisible();
  await expect(other.getByRole('heading', { name: t.app.notFound() })).toBeVisible();
});

test('what is changed of a server is kept, and what is wrong with it is said at its field', async ({
  signedIn: page,
  account,
  site,
}) => {
  const server = await site.server(account, 'old-name');
  await page.goto(`/servers/${server.id}/settings`);

  await page.getByLabel(t.settings.host()).fill('not a host');
  await page.getByRole('button', { name: t.settings.save() }).click();
  await expect(page.getByLabel(t.settings.host())).toHaveAccessibleDescription(/host name/i);

  await page.getByLabel(t.settings.host()).fill('db.example.com');
  await page.getByLabel(t.fleet.name(), { exact: true }).fill('new-name');
  await page.getByRole('button', { name: t.settings.save() }).click();
  await expect(page.getByRole('heading', { name: 'new-name', level: 1 })).toBeVisible();
  await page.reload();
  await expect(page.getByLabel(t.settings.host())).toHaveValue('db.example.com');
});

test('what is saved of a server leaves alone what another one has changed since', async ({
  signedIn: page,
  account,
  site,
}) => {
  const server = await site.server(account, 'shared', ['old']);
  await page.goto(`/servers/${server.id}/settings`);
  await page.getByLabel(t.settings.host()).fill('db.example.com');
  await site.call('PUT', `/servers/${server.id}`, account.token, { tags: ['new'] });

  const saved = told(page, t.settings.saved());
  await page.getByRole('button', { name: t.settings.save() }).click();

  await saved;
  expect(await site.call('GET', `/servers/${server.id}`, account.token)).toMatchObject({
    host: 'db.example.com',
    tags: ['new'],
  });
  await expect(page.getByRole('button', { name: t.ui.removeTag({ tag: 'new' }) })).toBeVisible();
});
