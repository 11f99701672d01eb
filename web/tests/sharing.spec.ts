// What one shares with others: who can do what on a server, and what somebody sees who may not do everything.
import type { Page } from '@playwright/test';
import { expectAccessible } from './support/accessible.ts';
import { hold } from './support/answer.ts';
import type { Account, ManagedServer, Site } from './support/site.ts';
import { expect, expectFits, forgive, navigation, tab, test } from './support/test.ts';
import * as t from './support/texts.ts';

/**
 * An end of access shows on an open page within a second of the service's answer; the rest is a slow machine's. After 20 s sockets
 * look by themselves whether it has ended.
 */
const SOON = { timeout: 15_000 };

const share = (site: Site, by: Account, to: Account, server: ManagedServer, role: string, rights: string[] = []) =>
  site.call<{ id: string }>('POST', '/grants', by.token, {
    subject: { username: to.username },
    scope: { server_id: server.id },
    role,
    ...(rights.length ? { rights } : {}),
  });

const dialog = (page: Page, server: ManagedServer) =>
  page.getByRole('dialog', { name: t.share.title({ server: server.name }) });

/** A reason that is read on the page; buttons have it as their description, too. */
const reason = (page: Page, text: string) => page.getByText(text).filter({ visible: true }).first();

const asks = (owner: Account, server: ManagedServer) => ({ owner: owner.username, server: server.name });

test('a server is shared, and the other one may do that and no more until it ends', async ({
  page,
  site,
  visit,
  faults,
}) => {
  const ada = await site.account();
  const bob = await site.account();
  const server = await site.server(ada, site.unique('web'), ['shop']);
  await site.agent(ada, server, '--commands', 'on', '--terminal', 'on', '--logs', 'on');
  const whom = asks(ada, server);
  const own = await visit(ada, `/servers/${server.id}`);

  await own.getByRole('button', { name: t.server.share(), exact: true }).click();
  const shown = dialog(own, server);
  await expect(shown.getByText(t.share.nobodyElseText())).toBeVisible();
  await shown.getByRole('button', { name: t.share.give() }).click();
  await shown.getByLabel(t.share.username(), { exact: true }).fill('nobody-at-all');
  await shown.getByRole('button', { name: t.share.give() }).click();
  await expect(shown.getByText(t.share.unknown())).toBeVisible();
  await shown.getByLabel(t.share.username(), { exact: true }).fill(bob.username);
  await shown.getByRole('radio', { name: t.access.operator() }).check();
  await shown.getByRole('checkbox', { name: t.access.containers() }).uncheck();
  await shown.getByRole('checkbox', { name: t.access.logs() }).uncheck();
  await expect(shown.getByText(t.share.noRight())).toBeVisible();
  await shown.getByRole('checkbox', { name: t.access.commands() }).check();
  await expectAccessible(own);
  await shown.getByRole('button', { name: t.share.give() }).click();
  await expect(shown.getByRole('listitem').filter({ hasText: bob.username })).toContainText(t.access.commands());

  // The other one finds it in the fleet, with its owner.
  const other = await visit(bob, '/?view=cards');
  await expect(other.getByText(t.fleet.ofOwner({ user: ada.username }))).toBeVisible();
  await other.getByRole('link', { name: server.name, exact: true }).click();
  await tab(other, t.server.commands()).click();
  await other.getByRole('textbox', { name: t.commands.command() }).fill('echo shared');
  await other.getByRole('button', { name: t.commands.run(), exact: true }).click();
  await expect(other.getByRole('region', { name: t.commandParts.command() })).toContainText('shared');

  await tab(other, t.server.logs()).click();
  await expect(reason(other, t.access.needsLogs(whom))).toBeVisible();
  await tab(other, t.server.terminal()).click();
  await expect(reason(other, t.access.needsTerminal(whom))).toBeVisible();
  await tab(other, t.server.keys()).click();
  const create = other.getByRole('button', { name: t.keys.create() });
  await expect(create).toHaveAttribute('aria-disabled', 'true');
  await expect(create).toHaveAccessibleDescription(t.access.needsManage(whom));
  // It can be pressed, and says why; the test tool takes it for one that cannot.
  await create.click({ force: true });
  await expect(other.locator('.toast').filter({ hasText: t.access.needsManage(whom) })).toBeVisible();
  await expect(other.getByRole('dialog')).toHaveCount(0);
  await tab(other, t.server.settings()).click();
  await expect(other.getByRole('button', { name: t.settings.deleteServer() })).toHaveAttribute('aria-disabled', 'true');
  await expect(other.getByLabel(t.settings.name(), { exact: true })).toBeDisabled();

  // Less: the page that is open follows.
  await tab(other, t.server.commands()).click();
  await expect(other.getByRole('textbox', { name: t.commands.command() })).toBeVisible();
  const [, grant] = await site.call<{ grants: { id: string }[] }[]>('GET', `/servers/${server.id}/access`, ada.token);
  await share(site, ada, bob, server, 'viewer');
  await site.call('DELETE', `/grants/${grant?.grants[0]?.id}`, ada.token);
  await expect(reason(other, t.access.needsCommands(whom))).toBeVisible(SOON);

  // Nothing: the page says so.
  await own.reload();
  const entry = dialog(own, server).getByRole('listitem').filter({ hasText: bob.username });
  await entry.getByRole('button').click();
  const question = own.getByRole('dialog', { name: t.share.endTitle({ subject: bob.username }) });
  await expect(question).toContainText(t.share.endGone({ subject: bob.username, server: server.name }));
  await question.getByRole('button', { name: t.share.end() }).click();
  await expect(other.getByRole('heading', { name: t.access.gone({ server: server.name }) })).toBeVisible(SOON);
  await expect(entry).toHaveCount(0);
  await other.getByRole('link', { name: t.access.toFleet() }).click();
  await expect(navigation(other)).toBeVisible();
  await expect(other.getByRole('link', { name: server.name, exact: true })).toHaveCount(0);
  await page.close();
  forgive(faults, /WebSocket/);
});

test('who stays on the pages of servers keeps one socket of all servers, where one is shared, and else none', async ({
  site,
  visit,
}) => {
  const ada = await site.account();
  const bob = await site.account();
  const own = await site.server(bob, site.unique('zz'));
  const [first, second] = [await site.server(ada, site.unique('aa')), await site.server(ada, site.unique('ab'))];
  for (const server of [first, second]) await share(site, ada, bob, server, 'viewer');
  const opened: string[] = [];
  const page = await visit(bob, '/account');
  page.on('websocket', (socket) => opened.push(new URL(socket.url()).pathname));
  const ofAll = () => opened.filter((path) => path.endsWith('/ws/fleet')).length;
  const lookAround = async (name: string) => {
    for (const label of [t.server.settings(), t.server.alerts(), t.server.settings(), t.server.overview()])
      await tab(page, label).click();
    await expect(page.getByRole('heading', { name, exact: true })).toBeVisible();
  };

  await page.goto(`/servers/${own.id}`);
  await lookAround(own.name);
  expect(ofAll()).toBe(0);

  await page.goto(`/servers/${first.id}`);
  await lookAround(first.name);
  await page.keyboard.press(']');
  await expect(page.getByRole('heading', { name: second.name, exact: true })).toBeVisible();
  await lookAround(second.name);
  expect(ofAll()).toBe(1);
});

test('a terminal closes when the right to it ends, and says why', async ({ site, visit }) => {
  const ada = await site.account();
  const bob = await site.account();
  const server = await site.server(ada);
  await site.agent(ada, server, '--terminal', 'on');
  const { id } = await share(site, ada, bob, server, 'operator', ['terminal']);
  await share(site, ada, bob, server, 'viewer');
  const other = await visit(bob, `/servers/${server.id}/terminal`);
  await other.getByRole('button', { name: t.terminal.openTerminal() }).click();
  await expect(other.getByText(t.terminal.open(), { exact: true })).toBeVisible();

  await site.call('DELETE', `/grants/${id}`, ada.token);

  await expect(other.getByRole('alert').filter({ hasText: t.terminal.taken() })).toBeVisible(SOON);
  await expect(reason(other, t.access.needsTerminal(asks(ada, server)))).toBeVisible(SOON);
});

test('alerts of a shared server are seen by a viewer, and acknowledged by a responder', async ({ site, visit }) => {
  const ada = await site.account();
  const bob = await site.account();
  const server = await site.server(ada);
  await site.agent(ada, server);
  await share(site, ada, bob, server, 'viewer');
  const other = await visit(bob, `/servers/${server.id}/alerts`);
  await expect(reason(other, t.access.needsRespond(asks(ada, server)))).toBeVisible();

  const rule = { server_id: server.id, metric_type: 'memory', comparison: 'gt', threshold_value: 0.01 };
  await site.call('POST', '/alerts/thresholds', ada.token, rule);
  const row = other
    .getByRole('row')
    .filter({ hasText: /memory/i })
    .first();
  await row.getByRole('checkbox').check();
  const acknowledge = other.getByRole('button', { name: t.alertList.acknowledge() });
  await expect(acknowledge).toHaveAttribute('aria-disabled', 'true');
  await share(site, ada, bob, server, 'responder');
  await expect(acknowledge).not.toHaveAttribute('aria-disabled', 'true', SOON);
  await acknowledge.click();
  await expect(row.getByText(t.alerts.acknowledged(), { exact: false }).first()).toBeVisible();
  // Rules are for managers.
  await expect(reason(other, t.access.needsManage(asks(ada, server)))).toBeVisible();
});

test('the buttons of the dialog stay where they are while its list is read', async ({ site, visit }) => {
  const ada = await site.account();
  const server = await site.server(ada);
  const page = await visit(ada, `/servers/${server.id}`);
  const release = await hold(page, /\/servers\/[^/]+\/access/);
  await page.getByRole('button', { name: t.server.share() }).click();
  const shown = dialog(page, server);
  await expect(shown).toContainText(t.app.ongoing({ what: t.app.loading() }));
  const before = await shown.getByRole('button', { name: t.share.give() }).boundingBox();
  expect(before).not.toBeNull();

  release();
  await expect(shown).toContainText(t.share.nobodyElseText());

  await expect.poll(() => shown.getByRole('button', { name: t.share.give() }).boundingBox()).toEqual(before);
});

test('a team gets a role on all servers with a tag, and a member who leaves loses it', async ({ site, visit }) => {
  const ada = await site.account();
  const bob = await site.account();
  const server = await site.server(ada, site.unique('db'), ['data']);
  const name = site.unique('ops');
  const own = await visit(ada, '/account/teams');

  await own.getByRole('button', { name: t.teams.create() }).first().click();
  await own.getByRole('dialog').getByLabel(t.teams.name()).fill(name);
  await own.getByRole('dialog').getByRole('button', { name: t.teams.create() }).click();
  const card = own.getByRole('region', { name, exact: true });
  await card.getByRole('textbox', { name: t.teams.addMemberTo({ team: name }) }).fill('nobody-at-all');
  await card.getByRole('button', { name: t.teams.addMember() }).click();
  await expect(card.getByText(t.teams.noSuchUser())).toBeVisible();
  await card.getByRole('textbox', { name: t.teams.addMemberTo({ team: name }) }).fill(bob.username);
  await card.getByRole('button', { name: t.teams.addMember() }).click();
  await expect(card.getByRole('listitem').filter({ hasText: bob.username })).toBeVisible();

  await own.goto(`/servers/${server.id}?share=1`);
  const shown = dialog(own, server);
  await shown.getByRole('button', { name: t.share.give() }).click();
  await shown.getByRole('radio', { name: t.share.aTeam() }).check();
  await shown.getByLabel(t.share.chooseTeam(), { exact: true }).selectOption({ label: name });
  await shown.getByLabel(t.share.where()).selectOption({ label: t.share.onTag({ tag: 'data' }) });
  await shown.getByRole('radio', { name: t.access.responder() }).check();
  await shown.getByRole('button', { name: t.share.give() }).click();
  const where = t.share.directTag({ owner: ada.username, tag: 'data' });
  await expect(shown.getByRole('listitem').filter({ hasText: bob.username })).toContainText(
    t.share.throughTeam({ where, team: name }),
  );

  const other = await visit(bob, '/account/teams');
  await expect(other.getByText(t.teams.onTagOf({ tag: 'data', owner: ada.username }))).toBeVisible();
  await expectAccessible(other);
  await other.setViewportSize({ width: 390, height: 844 });
  await expectFits(other);
  const page = await visit(bob, `/servers/${server.id}`);
  await expect(page.getByRole('heading', { name: server.name, exact: true })).toBeVisible();
  await other.getByRole('button', { name: t.teams.leaveOf({ team: name }) }).click();
  await other.getByRole('dialog').getByRole('button', { name: t.teams.leave() }).click();
  await expect(page.getByRole('heading', { name: t.access.gone({ server: server.name }) })).toBeVisible(SOON);

  await own.goto('/account/teams');
  await own.getByRole('button', { name: t.teams.renameOf({ team: name }) }).click();
  await own.getByRole('dialog').getByLabel(t.teams.name()).fill(`${name}-new`);
  await own.getByRole('dialog').getByRole('button', { name: t.teams.save() }).click();
  await expect(own.getByRole('heading', { name: `${name}-new`, exact: true })).toBeVisible();
  await own.getByRole('button', { name: t.teams.removeOf({ team: `${name}-new` }) }).click();
  await own.getByRole('dialog').getByRole('button', { name: t.teams.remove() }).click();
  await expect(own.getByText(t.teams.none())).toBeVisible();
  await expect(own.getByText(t.teams.givenNone())).toBeVisible();
});

test('the palette, a bulk run and the fleet tell own servers from shared ones', async ({ site, visit }) => {
  const ada = await site.account();
  const bob = await site.account();
  const shared = await site.server(ada, site.unique('shared'));
  await site.agent(ada, shared, '--commands', 'on');
  const mine = await site.server(bob, site.unique('mine'));
  await share(site, ada, bob, shared, 'viewer');
  const refused = t.access.needsCommands(asks(ada, shared));
  const page = await visit(bob, '/?view=cards');

  await page.getByRole('button', { name: t.fleet.mine() }).click();
  await expect(page.getByRole('link', { name: shared.name, exact: true })).toBeHidden();
  await page.getByRole('button', { name: t.fleet.shared() }).click();
  await expect(page.getByRole('link', { name: mine.name, exact: true })).toBeHidden();
  await expect(page.getByRole('link', { name: shared.name, exact: true })).toBeVisible();

  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: t.palette.title() }).fill(`run ${shared.name}`);
  const option = page.getByRole('listbox').getByRole('option').first();
  await expect(option).toHaveAttribute('aria-disabled', 'true');
  await expect(option).toContainText(refused);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('status').filter({ hasText: refused })).toBeVisible();

  await page.goto('/run');
  await expect(reason(page, refused)).toBeVisible();
  await expect(page.getByRole('checkbox', { name: shared.name })).toHaveCount(0);

  await page.goto(`/servers/${shared.id}?share=1`);
  const shown = dialog(page, shared);
  await expect(shown.getByRole('listitem')).toHaveCount(2);
  await expect(shown.getByRole('button', { name: t.share.give() })).toHaveAttribute('aria-disabled', 'true');
});

test('alerts of shared servers say whose server it is', async ({ site, visit }) => {
  const ada = await site.account();
  const bob = await site.account();
  const shared = await site.server(ada, site.unique('shared'));
  const mine = await site.server(bob, site.unique('mine'));
  await share(site, ada, bob, shared, 'viewer');
  for (const [account, server] of [
    [ada, shared],
    [bob, mine],
  ] as const) {
    await site.agent(account, server);
    const rule = { metric_type: 'memory', comparison: 'gt', threshold_value: 0.01, server_id: server.id };
    await site.call('POST', '/alerts/thresholds', account.token, rule);
  }
  const page = await visit(bob, '/');
  const owner = t.ui.ownedBy({ owner: ada.username });
  const open = page.getByRole('region', { name: t.fleet.openAlerts() }).getByRole('listitem');
  await expect(open.filter({ hasText: shared.name })).toContainText(owner);
  await expect(open.filter({ hasText: mine.name })).not.toContainText(t.ui.ownedBy({ owner: bob.username }));

  await page.goto('/alerts');
  const row = page.getByRole('row').filter({ hasText: shared.name });
  await expect(row).toContainText(owner);
  await expect(page.getByRole('row').filter({ hasText: mine.name })).not.toContainText(bob.username);
  await row.getByRole('link').first().click();
  await expect(page.getByRole('heading', { name: t.alerts.details() })).toBeVisible();
  await expect(page.getByText(owner)).toBeVisible();
  await expectAccessible(page);
});

test('a bulk run shows the line that allows commands, where a policy refused', async ({ site, visit }) => {
  const ada = await site.account();
  const server = await site.server(ada);
  await site.agent(ada, server);
  const batch = await site.call<{ id: string }>('POST', '/commands', ada.token, {
    command: 'uptime',
    server_ids: [server.id],
  });
  const page = await visit(ada, `/run/${batch.id}`);

  await page.getByText(t.allow.howToOn({ server: server.name })).click();

  await expect(page.getByLabel(t.allow.line(), { exact: true })).toContainText('--commands on');
  await expectAccessible(page);
});
