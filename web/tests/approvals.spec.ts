// Commands that wait for the signatures of several people, with real agents: who sees them, who signs, and what becomes of them.
import type { Page } from '@playwright/test';
import { answerTo } from './support/answer.ts';
import { expectAccessible, OF_COLOURS } from './support/accessible.ts';
import { enter, expect, navigation, test } from './support/test.ts';
import { addAuthenticator, atLocalhost } from './support/authenticator.ts';
import type { Account, ManagedServer, Site } from './support/site.ts';
import { askForMore, makeKey, serverWith, sshKey } from './support/signing.ts';
import { expectTargets } from './support/targets.ts';
import * as t from './support/texts.ts';

/** What a page without a network cannot ask. */
const API = '**/api/v1/**';

const main = (page: Page) => page.getByRole('main');
const press = (page: Page, name: string) => main(page).getByRole('button', { name, exact: true }).click();
const list = (page: Page) => page.getByRole('list', { name: t.approvals.list() });
/** What a command wrote on a server. The server's name and the command's duration may have the same digits. */
const output = (page: Page, server: ManagedServer) => page.getByRole('row', { name: server.name }).locator('code');
/** What a page says of a command by itself: it asks every few seconds. */
const badge = (page: Page, text: string) => main(page).getByText(text, { exact: true }).first();

function share(site: Site, owner: Account, server: ManagedServer, whom: Account, role: 'operator' | 'manager') {
  const subject = { username: whom.username };
  const rights = role === 'operator' ? { rights: ['commands'] } : {};
  return site.call('POST', '/grants', owner.token, { subject, scope: { server_id: server.id }, role, ...rights });
}

test('a command waits for a second person, who finds it, signs it with a passkey, and it runs', async ({
  page,
  account,
  site,
  origins,
  visit,
}) => {
  test.slow();
  const origin = atLocalhost(site);
  origins.push(origin);
  await addAuthenticator(page);
  await enter(page, account, `${origin}/account/security`);
  const ben = await site.account();
  const other = await visit(ben, `${origin}/account/security`);
  await addAuthenticator(other);
  const lines = [await makeKey(page), await makeKey(other)];
  const server = await serverWith(site, account, site.unique('vault'), lines);
  await share(site, account, server, ben, 'operator');

  await page.goto(`${origin}/run`);
  await page.getByRole('checkbox', { name: server.name }).check();
  await page.getByRole('textbox', { name: t.run.command() }).fill('echo $((40 + 2))');
  await press(page, t.run.runOn({ count: 1 }));
  const dialog = page.getByRole('dialog', { name: t.signing.titleCommand() });
  await expect(dialog).toContainText(t.signing.needsPeople({ count: 2 }));
  await expectAccessible(page);
  await dialog.getByRole('button', { name: t.signing.signAndAsk(), exact: true }).click();

  await expect(page.getByRole('heading', { name: t.approvals.signatures() })).toBeVisible();
  await expect(badge(page, t.approvals.waitsFor({ count: 1 }))).toBeVisible();
  await expect(page).toHaveURL(/\/run\/[0-9a-f-]{36}$/);
  const address = page.url();
  await expect(main(page)).toContainText(t.approvals.signedOf({ signed: 1, needed: 2 }));
  await expect(main(page)).toContainText(t.approvals.missing({ count: 1 }));
  await expect(main(page)).toContainText(t.approvals.whoCan());
  await expect(page.getByLabel(t.approvals.link())).toHaveText(address);

  // A page that shows no server counts what waits, too.
  await other.goto(`${origin}/account`);
  const waits = navigation(other).getByLabel(t.approvals.count({ count: 1 }));
  await expect(waits).toHaveText('1');
  await waits.click();
  await main(other).getByRole('link', { name: t.run.waiting() }).click();
  await expect(other).toHaveURL(/\/run\?view=waiting$/);
  const item = list(other).getByRole('listitem');
  for (const text of ['echo $((40 + 2))', server.name, t.approvals.askedBy({ user: account.username })])
    await expect(item).toContainText(text);
  await expect(item).toContainText(t.approvals.signedOf({ signed: 1, needed: 2 }));
  await item.getByRole('button', { name: t.approvals.sign() }).click();
  const sign = other.getByRole('dialog', { name: t.signing.titleCommand() });
  await expect(sign.locator('[data-signed]')).toHaveText('echo $((40 + 2))');
  await expect(sign).toContainText(t.signing.cosignText({ user: account.username }));
  await expectAccessible(other);
  await expectTargets(other);
  await other.emulateMedia({ colorScheme: 'dark' });
  await expectAccessible(other, ...OF_COLOURS);
  await sign.getByRole('button', { name: t.signing.sign(), exact: true }).click();

  // The address is the same: first of what waits, then of its results.
  await expect(page.getByText(t.run.doneOf({ done: 1, total: 1 }))).toBeVisible();
  await expect(output(page, server)).toHaveText('42');
  await expect(page).toHaveURL(address);
  await expect(other.getByText(t.approvals.none())).toBeVisible();
  await expect(waits).toBeHidden();
  await other.goto(address);
  await expect(main(other)).toContainText(t.approvals.otherRunsText({ user: account.username }));
});

test('the signature of a colleague is pasted, and each key counts once', async ({ signedIn: page, account, site }) => {
  const [ada, ben] = [sshKey(site, 'ada'), sshKey(site, 'ben')];
  const server = await serverWith(site, account, site.unique('vault'), [ada.line, ben.line]);
  const { id, payload } = await askForMore(site, account, server, ada);
  await page.goto('/run?view=waiting');
  await list(page).getByRole('link', { name: 'echo $((40 + 2))' }).click();
  await expect(page).toHaveURL(`/run/${id}`);

  await expect(main(page)).toContainText(t.approvals.addAnotherHint());
  await press(page, t.approvals.addAnother());
  const dialog = page.getByRole('dialog', { name: t.signing.titleCommand() });
  // Leaving signs nothing, whatever the page has heard of the command in between.
  await page.waitForResponse(new RegExp(`/approvals/${id}$`));
  await dialog.getByRole('button', { name: t.signing.cancel() }).click();
  await expect(dialog).toBeHidden();
  await expect(page.getByText(t.approvals.signedDone())).toBeHidden();
  await press(page, t.approvals.addAnother());
  await dialog.getByRole('radio', { name: t.signing.ssh() }).check();
  expect(await dialog.getByLabel(t.signing.payload(), { exact: true }).textContent()).toBe(payload);
  const field = dialog.getByLabel(t.signing.signature(), { exact: true });
  const sign = dialog.getByRole('button', { name: t.signing.sign(), exact: true });
  await sign.click();
  await expect(field).toHaveAccessibleDescription(new RegExp(t.signing.noSignature()));
  await field.fill(ada.sign(payload));
  await sign.click();
  await expect(dialog.getByRole('alert')).toContainText('signed already');
  const pasted = ben.sign(payload);
  await field.fill(pasted);
  // Without a network nothing is signed, and what was pasted is there to be sent again.
  await page.route(API, (route) => route.abort('internetdisconnected'));
  await sign.click();
  await expect(dialog.getByRole('alert')).toContainText(t.app.failed());
  await expect(main(page).getByText(t.approvals.stale())).toBeAttached();
  await expect(field).toHaveValue(pasted);
  await page.unroute(API);
  await sign.click();

  await expect(dialog).toBeHidden();
  await expect(output(page, server)).toHaveText('42');
});

test('of two pasted signatures, one that the service has taken is not sent again', async ({
  signedIn: page,
  account,
  site,
}) => {
  const [ada, ben, cyd] = [sshKey(site, 'ada'), sshKey(site, 'ben'), sshKey(site, 'cyd')];
  const server = await serverWith(site, account, site.unique('vault'), [ada.line, ben.line, cyd.line]);
  const { id, payload } = await askForMore(site, account, server, ada);
  await page.goto(`/run/${id}`);
  await press(page, t.approvals.addAnother());
  const dialog = page.getByRole('dialog', { name: t.signing.titleCommand() });
  await dialog.getByRole('radio', { name: t.signing.ssh() }).check();
  await dialog.getByLabel(t.signing.signature(), { exact: true }).fill(ben.sign(payload) + cyd.sign(payload));
  let sent = 0;
  await page.route('**/signatures', (route) => (++sent === 2 ? route.abort() : route.continue()));
  const sign = dialog.getByRole('button', { name: t.signing.sign(), exact: true });

  await sign.click();
  await expect(dialog.getByRole('alert')).toContainText(t.app.failed());
  await sign.click();

  await expect(dialog).toBeHidden();
  await expect(output(page, server)).toHaveText('42');
  expect(sent).toBe(3);
});

test('what the agent refuses waits again, and runs with the signature that was missing', async ({
  signedIn: page,
  account,
  site,
}) => {
  const [ada, ben, eve] = [sshKey(site, 'ada'), sshKey(site, 'ben'), sshKey(site, 'eve')];
  const server = await serverWith(site, account, site.unique('vault'), [ada.line, ben.line]);
  const { id, payload } = await askForMore(site, account, server, ada);
  const sign = (key: typeof ada) => {
    const signature = { type: 'sshsig', signature: key.sign(payload) };
    return site.call('POST', `/commands/approvals/${id}/signatures`, account.token, signature);
  };
  await sign(eve);

  // The refusals stay where they are, and lead to what waits.
  await page.goto(`/run/${id}`);
  await expect(main(page)).toContainText(t.approvals.refusedFew());
  await expectAccessible(page);
  await main(page)
    .getByRole('link', { name: t.approvals.waitsFor({ count: 1 }) })
    .click();
  await expect(page).toHaveURL(`/run/${id}?view=waiting`);
  await expect(main(page)).toContainText(t.approvals.signedOf({ signed: 2, needed: 3 }));
  await expect(main(page)).toContainText(t.approvals.refusedFew());
  await expectAccessible(page);
  await page.goto('/run?view=waiting');
  await expect(list(page)).toContainText(t.approvals.refusedShort());
  await list(page).getByRole('link', { name: 'echo $((40 + 2))' }).click();
  await expect(page).toHaveURL(`/run/${id}?view=waiting`);

  await sign(ben);

  await expect(output(page, server)).toHaveText('42');
  await expect(page).not.toHaveURL(new RegExp(id));
  const address = page.url();
  // What waited would lead to the batch again.
  await page.goBack();
  await expect(page).toHaveURL('/run?view=waiting');
  await page.goto(`/run/${id}`);
  await expect(main(page)).toContainText(t.approvals.ranAgain());
  await main(page).getByRole('link', { name: t.approvals.show(), exact: true }).click();
  await expect(page).toHaveURL(address);
});

test('ended ones that cannot be read are said, and read once when they can', async ({
  signedIn: page,
  account,
  site,
}) => {
  const [ada, ben] = [sshKey(site, 'ada'), sshKey(site, 'ben')];
  const server = await serverWith(site, account, site.unique('vault'), [ada.line, ben.line]);
  const { id } = await askForMore(site, account, server, ada, { command: 'echo ended' });
  await site.call('DELETE', `/commands/approvals/${id}`, account.token);
  const all = /\/commands\/approvals\?(?!.*status=)/;
  await page.route(all, (route) => route.abort());

  await page.goto('/run?view=waiting');
  const earlier = page.getByRole('region', { name: t.approvals.earlier() });
  await expect(earlier.getByRole('alert')).toContainText(t.app.failed());
  await page.unroute(all);
  let asked = 0;
  page.on('request', (request) => void (all.test(request.url()) && (asked += 1)));
  await earlier.getByRole('button', { name: t.app.tryAgain() }).click();

  await expect(earlier.getByRole('link', { name: 'echo ended' })).toBeVisible();
  await page.waitForResponse(/\/commands\/approvals\?.*status=/);
  expect(asked).toBe(1);
});

test('who asked withdraws it, who manages its servers refuses it, and who may neither sees why', async ({
  signedIn: page,
  account,
  site,
  visit,
}) => {
  const [ada, ben] = [sshKey(site, 'ada'), sshKey(site, 'ben')];
  const server = await serverWith(site, account, site.unique('vault'), [ada.line, ben.line]);
  const [operator, manager] = [await site.account(), await site.account()];
  await share(site, account, server, operator, 'operator');
  await share(site, account, server, manager, 'manager');
  const first = await askForMore(site, account, server, ada, { command: 'echo first' });
  const second = await askForMore(site, account, server, ada, { command: 'echo second' });

  const asOperator = await visit(operator, `/run/${first.id}`);
  const refuse = main(asOperator).getByRole('button', { name: t.approvals.refuse() });
  await expect(refuse).toHaveAttribute('aria-disabled', 'true');
  const why = t.access.needsManage({ owner: account.username, server: server.name });
  await expect(refuse).toHaveAccessibleDescription(why);
  await expectAccessible(asOperator);

  await page.goto(`/run/${first.id}`);
  await expect(badge(page, t.approvals.waitsFor({ count: 1 }))).toBeVisible();
  const asManager = await visit(manager, `/run/${first.id}`);
  await press(asManager, t.approvals.refuse());
  await asManager.getByRole('dialog').getByRole('button', { name: t.approvals.refuse() }).click();
  await expect(badge(asManager, t.approvals.withdrawn())).toBeVisible();
  // The others see it without doing anything.
  for (const watcher of [page, asOperator])
    await expect(main(watcher).getByText(t.approvals.withdrawnText())).toBeVisible();
  await expect(main(page).getByRole('button', { name: t.approvals.addAnother() })).toBeHidden();

  await page.goto(`/run/${second.id}`);
  await press(page, t.approvals.withdraw());
  await page.getByRole('dialog').getByRole('button', { name: t.approvals.withdraw() }).click();
  await expect(main(page).getByText(t.approvals.withdrawnText())).toBeVisible();
  await page.goto('/run?view=waiting');
  await expect(page.getByText(t.approvals.none())).toBeVisible();
  const earlier = page.getByRole('region', { name: t.approvals.earlier() });
  await expect(earlier.getByRole('listitem')).toHaveCount(2);
  await expect(earlier).toContainText(t.approvals.withdrawn());
});

test('what is not signed in time says that it has expired, while somebody looks', async ({
  signedIn: page,
  account,
  site,
}) => {
  const [ada, ben] = [sshKey(site, 'ada'), sshKey(site, 'ben')];
  const server = await serverWith(site, account, site.unique('vault'), [ada.line, ben.line]);
  const { id } = await askForMore(site, account, server, ada, { holdsMs: 45_000 });

  await page.goto(`/run/${id}`);
  await expect(badge(page, t.approvals.waitsFor({ count: 1 }))).toBeVisible();

  await expect(badge(page, t.approvals.expired())).toBeVisible({ timeout: 90_000 });
  await expect(main(page)).toContainText(t.approvals.expiredText());
  await expect(main(page).getByRole('button', { name: t.approvals.withdraw() })).toBeHidden();
});

test('what is signed is what is shown: other words of the service cannot be signed', async ({
  signedIn: page,
  account,
  site,
}) => {
  const [ada, ben] = [sshKey(site, 'ada'), sshKey(site, 'ben')];
  const server = await serverWith(site, account, site.unique('vault'), [ada.line, ben.line]);
  const { id } = await askForMore(site, account, server, ada, { command: 'rm --recursive everything' });
  // A service that an attacker controls.
  await page.route(`**/api/v1/commands/approvals/${id}`, async (route) => {
    const response = await answerTo(route);
    await route.fulfill({ response, json: { ...((await response.json()) as object), command: 'uptime' } });
  });

  await page.goto(`/run/${id}`);
  await press(page, t.approvals.addAnother());

  const dialog = page.getByRole('dialog', { name: t.signing.titleCommand() });
  await expect(dialog.getByRole('alert')).toHaveText(t.signing.payloadDiffers());
  await expect(dialog.locator('[data-signed]')).toHaveText('rm --recursive everything');
  await expect(dialog.getByRole('button', { name: t.signing.sign(), exact: true })).toBeDisabled();
});

test('settings say who signs, and make the line of an own key', async ({ signedIn: page, account, site }) => {
  const [ada, ben] = [sshKey(site, 'ada'), sshKey(site, 'ben')];
  const server = await serverWith(site, account, site.unique('vault'), [ada.line, `${ben.line}\n${ada.line}`]);
  const plain = await site.server(account);
  await site.agent(account, plain, '--commands', 'on');

  await page.goto(`/servers/${server.id}/settings`);
  const region = page.getByRole('region', { name: t.settings.whoSigns() });
  await expect(region).toContainText(t.settings.signsText());
  const told = region.getByRole('definition');
  await expect(told).toHaveText([/./, server.name, '2', /./]);
  await expect(told.last()).toContainText(t.settings.byWhomText());
  await expect(told.last().getByRole('listitem')).toHaveText([
    `ada@example.org ssh-ed25519 ${ada.fingerprint}`,
    `ben@example.org ssh-ed25519 ${ben.fingerprint}`,
    // The file has this key twice.
    `ada@example.org ssh-ed25519 ${ada.fingerprint}`,
  ]);
  await region.getByRole('button', { name: t.settings.beSigner() }).click();
  const dialog = page.getByRole('dialog', { name: t.settings.beSigner() });
  await expect(dialog).toContainText(t.settings.beSignerText());
  await dialog.getByRole('radio', { name: t.settings.withSsh() }).check();
  const field = dialog.getByLabel(t.settings.sshKey());
  await field.fill('-----BEGIN OPENSSH PRIVATE KEY-----');
  await expect(field).toHaveAccessibleDescription(t.settings.badSshKey());
  await field.fill(ada.pub);
  const [kind, key] = ada.pub.split(' ');
  await expect(dialog.getByLabel(t.signing.keyLine())).toHaveText(`${account.email} ${kind} ${key}`);
  await expect(dialog).toContainText(t.like(t.settings.fingerprint({ fingerprint: 'SHA256:{}' })));
  await expectAccessible(page);

  await page.goto(`/servers/${plain.id}/settings`);
  const open = page.getByRole('region', { name: t.settings.whoSigns() });
  await expect(open).toContainText(t.settings.signsNothing());
  await open.getByText(t.signers.ask(), { exact: true }).click();
  await open.getByLabel(t.signers.label()).fill(`ada=${kind} ${key}`);
  await expect(open.getByLabel(t.signers.lineFor())).toHaveText(
    `curl -fsSL ${site.origin}/install.sh | sudo sh -s -- --commands signed --signers 'ada=${kind} ${key}'`,
  );
});
