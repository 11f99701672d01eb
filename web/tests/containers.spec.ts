import type { Page } from '@playwright/test';
import { enter, expect, tab, test, type Control } from './support/test.ts';
import * as t from './support/texts.ts';

async function open(page: Page, control: Control): Promise<void> {
  await enter(page, control.account, `/servers/${control.server.id}`);
  await tab(page, t.server.containers()).click();
}

/** Alone in the list it is not moved by what other tests do. */
async function search(page: Page, name: string): Promise<void> {
  await page.getByRole('searchbox', { name: t.containers.search() }).fill(name);
  await expect(page.getByRole('row')).toHaveCount(2);
}

const rowOf = (page: Page, name: string) =>
  page.getByRole('row').filter({ has: page.getByRole('button', { name, exact: true }) });

test('a container is restarted after a question, and really is', async ({ page, control, site }) => {
  const name = site.unique(`restarted-${process.pid}`);
  const id = await control.docker.run(name);
  const startedAt = await control.docker.startedAt(id);
  await open(page, control);
  await search(page, name);
  const row = rowOf(page, name);
  const restart = row.getByRole('button', { name: t.containers.act({ verb: t.containers.restart(), name }) });
  await expect(row).toContainText(t.containers.running());

  await restart.click();
  const asked = page.getByRole('dialog', { name: t.containers.ask({ verb: t.containers.restart(), name }) });
  await asked.getByRole('button', { name: t.app.cancel() }).click();
  await expect(asked).toBeHidden();
  expect(await control.docker.startedAt(id)).toBe(startedAt);

  await restart.click();
  const answered = page.waitForResponse(
    (response) => response.request().method() === 'POST' && response.url().endsWith('/restart'),
  );
  await asked.getByRole('button', { name: t.containers.restart(), exact: true }).click();
  await expect.poll(() => control.docker.startedAt(id)).not.toBe(startedAt);
  // The outcome is recorded after the engine has acted, and before the answer.
  expect((await answered).ok()).toBe(true);
  // It runs before and after: its button is busy until the page has the answer.
  await expect(restart).toHaveAttribute('aria-busy', 'false');
  await expect(row).toContainText(t.containers.running());
  await expect(restart).toBeFocused();

  // Who did it, and to which container, stands in the server's events and in the audit log.
  const { account, server } = control;
  await page.goto(`/servers/${server.id}`);
  await expect(page.getByRole('region', { name: t.overview.events(), exact: true })).toContainText(
    t.overview.restartedContainer({ user: account.username, container: name }),
  );
  await page.goto('/account/audit?action=container.');
  const entry = page.getByRole('row').filter({
    hasText: t.plain(t.audit.restartedContainer({ container: name, name: server.name })),
  });
  await expect(entry.first()).toContainText(account.username);
});

test('a container is stopped and started, and what happens to it elsewhere is seen', async ({
  page,
  control,
  site,
}) => {
  const name = site.unique(`stopped-${process.pid}`);
  const id = await control.docker.run(name);
  await open(page, control);
  await search(page, name);
  const row = rowOf(page, name);

  const stop = row.getByRole('button', { name: t.containers.act({ verb: t.containers.stop(), name }) });
  await stop.click();
  await page.getByRole('dialog').getByRole('button', { name: t.containers.stop(), exact: true }).click();
  await expect(row).toContainText(t.containers.exited());
  // The button that was pressed is gone: the focus is still in the row.
  await expect(stop).toBeHidden();
  await expect(row.getByRole('button', { name, exact: true })).toBeFocused();
  expect(await control.docker.state(id)).toBe('exited');

  await row.getByRole('button', { name: t.containers.act({ verb: t.containers.start(), name }) }).click();
  await expect(row).toContainText(t.containers.running());
  expect(await control.docker.state(id)).toBe('running');

  // By somebody on the machine: no button was pressed here. The row stays while it has the focus.
  await row.getByRole('button', { name, exact: true }).focus();
  await control.docker.clear();
  await expect(row).toContainText(t.containers.removed());
  await expect(stop).toBeHidden();
  await page.getByRole('searchbox', { name: t.containers.search() }).fill('');
  await expect(row).toBeHidden();
});

test('a container is found by its name, and its details have an address', async ({ page, control, site, visit }) => {
  const name = site.unique(`looked-at-${process.pid}`);
  const id = await control.docker.run(name, 'echo here I am');
  await open(page, control);
  await search(page, name);

  await page.getByRole('button', { name, exact: true }).click();

  const panel = page.getByRole('region', { name: t.containers.container({ name }) });
  await expect(panel).toContainText(id.slice(0, 12));
  await expect(panel).toContainText('busybox:test');
  await expect(panel.getByRole('log')).toContainText('here I am');
  const other = await visit(control.account, page.url());
  await expect(other.getByRole('region', { name: t.containers.container({ name }) })).toContainText(id.slice(0, 12));
});

test('an agent that may only read containers offers no button, and says why', async ({
  signedIn: page,
  account,
  site,
  control,
}) => {
  const name = site.unique(`read-only-${process.pid}`);
  await control.docker.run(name);
  const server = await site.server(account);
  await site.agent(account, server, '--docker', 'read', '--docker-host', control.docker.host);

  await page.goto(`/servers/${server.id}/containers`);

  await expect(rowOf(page, name)).toContainText(t.containers.running());
  await expect(page.getByText(t.containers.readOnly())).toBeVisible();
  await page.getByText(t.containers.allowControl(), { exact: true }).click();
  await expect(page.getByLabel(t.allow.line())).toHaveText(/ -- --docker control$/);
  await expect(
    page.getByRole('button', { name: t.containers.act({ verb: t.containers.restart(), name }) }),
  ).toBeHidden();
});

test('where the agent reads no containers, or finds no engine, the page says which', async ({
  signedIn: page,
  account,
  site,
}) => {
  const server = await site.server(account);
  const agent = await site.agent(account, server);
  await page.goto(`/servers/${server.id}/containers`);
  await expect(page.getByRole('heading', { name: t.unable.noContainers() })).toBeVisible();

  await agent.end();
  await site.agent(account, server, '--docker', 'read', '--docker-host', `unix://${site.directory}/no-engine.sock`);

  await expect(page.getByRole('heading', { name: t.containers.noEngine() })).toBeVisible();
});
