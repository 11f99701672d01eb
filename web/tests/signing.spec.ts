// Servers that ask for signatures, with real agents: what is signed in the browser runs there, once, and nowhere else.
import { readFileSync } from 'node:fs';
import type { Locator, Page } from '@playwright/test';
import { expectAccessible, OF_COLOURS } from './support/accessible.ts';
import { enter, expect, FROM_A_SHELL, test } from './support/test.ts';
import { addAuthenticator, atLocalhost } from './support/authenticator.ts';
import { makeKey, sshKey } from './support/signing.ts';
import { expectTargets } from './support/targets.ts';
import * as t from './support/texts.ts';

/** What a page without a network cannot ask. */
const API = '**/api/v1/**';

const dialogOf = (page: Page, title = t.signing.titleCommand()) => page.getByRole('dialog', { name: title });
const signButton = (dialog: Locator, action = t.signing.signAndRun()) =>
  dialog.getByRole('button', { name: action, exact: true });

async function compose(page: Page, command: string): Promise<void> {
  await page.getByRole('textbox', { name: t.commands.command() }).fill(command);
  await page.getByRole('button', { name: t.commands.run(), exact: true }).click();
}

test('a command is signed with a passkey in the browser and runs; one of a stranger is refused with the reason', async ({
  page,
  account,
  site,
  origins,
}) => {
  const origin = atLocalhost(site);
  origins.push(origin);
  await addAuthenticator(page);
  await enter(page, account, `${origin}/account/security`);
  const line = await makeKey(page);
  expect(line).toMatch(new RegExp(`^${account.email} sk-webauthn [A-Za-z0-9_-]{90,120} localhost$`));
  const stranger = sshKey(site, 'eve');
  const closed = await site.server(account);
  await site.signedAgent(account, closed, closed.name, `${stranger.line}\n`);
  const server = await site.server(account);
  await site.signedAgent(account, server, 'db-main', `${stranger.line}\n${line}\n`);

  await page.goto(`${origin}/servers/${server.id}/commands`);
  await compose(page, 'echo "signed $((6 * 7))"');
  const dialog = dialogOf(page);
  await expect(dialog.locator('[data-signed]')).toHaveText('echo "signed $((6 * 7))"');
  await expectAccessible(page);
  await expectTargets(page);
  // The name that the agent has told stands there.
  const name = dialog.getByLabel(t.signing.nameOf({ server: server.name }));
  await expect(name).toHaveValue('db-main');
  await name.fill('db-other');
  await signButton(dialog).click();
  await expect(dialog.getByRole('alert')).toContainText(t.signing.wrongServer());
  await expect(dialog.getByRole('alert')).toContainText(t.signing.wrongServerHelp());
  await expectAccessible(page);
  await page.emulateMedia({ colorScheme: 'dark' });
  await expectAccessible(page, ...OF_COLOURS);
  await name.fill('db-main');
  await signButton(dialog).click();

  // An agent that has just begun to keep its record takes nothing that was valid before: signed again it is.
  await expect(async () => {
    if (await dialog.isVisible()) {
      await expect(dialog.getByRole('alert')).toContainText(t.signing.expired());
      await signButton(dialog).click();
    }
    await expect(page.getByText('signed 42', { exact: true })).toBeVisible({ timeout: 5_000 });
  }).toPass();
  await expect(dialog).toBeHidden();

  await page.goto(`${origin}/servers/${closed.id}/commands`);
  await compose(page, 'true');
  await signButton(dialog).click();
  await expect(dialog.getByRole('alert')).toContainText(t.signing.unknownSigner());
  await dialog.getByRole('button', { name: t.signing.unsigned() }).click();
  await expect(page.getByRole('alert').first()).toContainText(t.signing.notSigned());

  await page.goto(`${origin}/account/audit`);
  const entry = page.getByRole('row').filter({ hasText: 'signed $((6 * 7))' }).first();
  await entry.getByText(t.audit.signedWith({ keys: t.audit.aPasskey() })).click();
  await expect(entry.getByLabel(t.audit.signedPayload())).toContainText('"db-main"');
  await expect(entry).toContainText('signalbox audit verify --signatures');
  await expectAccessible(page);
});

test('one touch signs a batch for two servers, and neither runs it twice', async ({ page, account, site, origins }) => {
  const origin = atLocalhost(site);
  origins.push(origin);
  await addAuthenticator(page);
  await enter(page, account, `${origin}/account/security`);
  const line = await makeKey(page);
  const servers = [await site.server(account, 'alpha'), await site.server(account, 'beta')];
  for (const server of servers) {
    site.keepsNoncesSince(server, Date.now() - 3_600_000);
    await site.signedAgent(account, server, `${server.name}-1`, `${line}\n`);
  }
  const plain = await site.server(account, 'gamma');
  await site.agent(account, plain, '--commands', 'on');
  let touches = 0;
  await page.exposeFunction('touched', () => (touches += 1));
  await page.addInitScript(() => {
    const get = navigator.credentials.get.bind(navigator.credentials);
    navigator.credentials.get = (options) => {
      void (globalThis as unknown as { touched: () => void }).touched();
      return get(options);
    };
  });

  await page.goto(`${origin}/run`);
  for (const { name } of [...servers, plain]) await page.getByRole('checkbox', { name }).check();
  await page.getByRole('textbox', { name: t.run.command() }).fill('echo $((40 + 2))');
  await expect(page.getByText(t.signing.mixed({ signed: 2, others: 1 }))).toBeVisible();
  await expect(page.getByRole('button', { name: t.run.runOn({ count: 3 }) })).toBeDisabled();
  await page.getByRole('button', { name: t.signing.onlySigned({ count: 2 }) }).click();
  await page.getByRole('button', { name: t.run.runOn({ count: 2 }), exact: true }).click();
  const dialog = dialogOf(page);
  for (const { name } of servers)
    await expect(dialog.getByLabel(t.signing.nameOf({ server: name }))).toHaveValue(`${name}-1`);
  await expect(dialog.locator('[data-signed]')).toHaveText('echo $((40 + 2))');
  await expect(dialog.getByLabel(t.signing.validFor())).toHaveValue('10');
  await expectAccessible(page);
  await signButton(dialog).click();

  await expect(page.getByText(t.run.doneOf({ done: 2, total: 2 }))).toBeVisible();
  await expect(page.getByRole('row', { name: t.commandParts.succeeded() })).toHaveCount(2);
  expect(touches).toBe(1);

  // The names are remembered where they were right.
  await page.getByRole('button', { name: t.run.again(), exact: true }).click();
  await expect(dialog.getByLabel(t.signing.nameOf({ server: 'alpha' }))).toHaveValue('alpha-1');
  await dialog.getByLabel(t.signing.nameOf({ server: 'beta' })).fill('another');
  await signButton(dialog).click();
  await expect(page.getByRole('row', { name: t.commandParts.succeeded() })).toHaveCount(1);
  await page.getByRole('button', { name: t.run.byOutput() }).click();
  await expect(page.getByRole('alert')).toContainText(t.signing.wrongServer());
});

test('two people sign with SSH keys what the dialog shows, one after another', async ({
  signedIn: page,
  account,
  site,
}) => {
  const [ada, ben] = [sshKey(site, 'ada'), sshKey(site, 'ben')];
  const server = await site.server(account);
  site.keepsNoncesSince(server, Date.now() - 3_600_000);
  await site.signedAgent(account, server, server.name, `${ada.line}\n${ben.line}\n`, 'approvals = 2');
  await page.goto(`/servers/${server.id}/commands`);
  await page.getByRole('checkbox', { name: t.commands.giveInput() }).check();
  await page.getByLabel(t.commands.input()).fill('what comes in');
  await compose(page, 'cat; echo');
  const dialog = dialogOf(page);
  await dialog.getByRole('radio', { name: t.signing.ssh() }).check();
  const shown = dialog.getByLabel(t.signing.payload(), { exact: true });
  await expect(shown).toContainText(server.name);
  const payload = async () => {
    const download = page.waitForEvent('download');
    await dialog.getByRole('button', { name: t.signing.download() }).click();
    return readFileSync(await (await download).path(), 'utf8');
  };
  const first = await payload();
  expect(await shown.textContent()).toBe(first);
  const field = dialog.getByLabel(t.signing.signature(), { exact: true });
  await expect(dialog).toContainText(t.signing.othersLater());
  await dialog.getByRole('checkbox', { name: t.signing.gatherHere() }).check();
  await expect(dialog).toContainText(t.signing.othersHere());
  const add = signButton(dialog, t.signing.addSignature());
  await field.fill('no signature');
  await add.click();
  await expect(field).toHaveAccessibleDescription(new RegExp(t.signing.noSignature()));
  await expectAccessible(page);

  await field.fill(ada.sign(first));
  await add.click();
  await expect(dialog.getByText(t.signing.collected({ count: 1 }))).toBeVisible();
  expect(await payload()).toBe(first);
  // A touch that is cancelled takes nothing from those who have signed.
  await page.evaluate(() => {
    navigator.credentials.get = () => Promise.reject(new DOMException('cancelled', 'NotAllowedError'));
  });
  await dialog.getByRole('radio', { name: t.signing.passkey() }).check();
  await signButton(dialog).click();
  await expect(dialog.getByRole('alert')).toBeVisible();
  await expect(dialog.getByText(t.signing.collected({ count: 1 }))).toBeVisible();
  await dialog.getByRole('radio', { name: t.signing.ssh() }).check();
  expect(await payload()).toBe(first);
  await field.fill(ben.sign(first));
  // Neither does a network that is away.
  await page.route(API, (route) => route.abort('internetdisconnected'));
  await signButton(dialog).click();
  await expect(dialog.getByRole('alert')).toContainText(t.app.failed());
  await expect(dialog.getByText(t.signing.collected({ count: 1 }))).toBeVisible();
  await page.unroute(API);
  await signButton(dialog).click();

  await expect(page.getByText('what comes in', { exact: true })).toBeVisible();
});

test('a terminal is signed for a time, and opens', async ({ page, account, site, origins }) => {
  test.slow();
  const origin = atLocalhost(site);
  origins.push(origin);
  await addAuthenticator(page);
  await enter(page, account, `${origin}/account/security`);
  const line = await makeKey(page);
  const server = await site.server(account);
  site.keepsNoncesSince(server, Date.now() - 3_600_000);
  await site.signedAgent(account, server, server.name, `${line}\n`);

  await page.goto(`${origin}/servers/${server.id}/terminal`);
  await page.getByRole('checkbox', { name: t.terminal.screenReader() }).check();
  await page.getByRole('button', { name: t.terminal.openTerminal() }).click();
  const dialog = dialogOf(page, t.signing.titleTerminal());
  await expect(dialog).toContainText(t.signing.terminalRisk());
  await expectAccessible(page);
  await signButton(dialog, t.signing.signAndOpen()).click();

  const terminal = page.getByRole('region', { name: t.terminal.label({ name: server.name }) });
  await expect(terminal.getByText(t.terminal.open(), { exact: true })).toBeVisible();
  await page.keyboard.type('echo $((6 * 7))hi\n');
  await expect(terminal.locator('.xterm-accessibility')).toContainText('42hi', FROM_A_SHELL);
  await page.keyboard.type('exit\n');
  await terminal.getByRole('button', { name: t.terminal.openNew() }).click();
  await dialog.getByLabel(t.signing.nameOf({ server: server.name })).fill('another');
  await signButton(dialog, t.signing.signAndOpen()).click();
  await expect(terminal.getByRole('alert')).toContainText(t.signing.wrongServerHelp());
});

test('a key that this browser made stays with its line until it is forgotten', async ({
  page,
  account,
  site,
  origins,
}) => {
  const origin = atLocalhost(site);
  origins.push(origin);
  await addAuthenticator(page);
  await enter(page, account, `${origin}/account/security`);
  await page.getByRole('button', { name: t.signing.makeKey() }).click();
  const dialog = page.getByRole('dialog', { name: t.signing.makeKey() });
  await dialog.getByLabel(t.signing.keyName()).fill('ada lovelace');
  await dialog.getByRole('button', { name: t.signing.make() }).click();
  await expect(dialog.getByLabel(t.signing.keyName())).toHaveAccessibleDescription(new RegExp(t.signing.badKeyName()));
  await expectAccessible(page);
  await dialog.getByLabel(t.signing.keyName()).fill('ada');
  await dialog.getByRole('button', { name: t.signing.make() }).click();
  await expectAccessible(page);
  const line = await dialog.getByLabel(t.signing.keyLine()).innerText();
  await dialog.getByRole('button', { name: t.signing.done() }).click();

  await page.reload();
  const key = page.getByRole('listitem').filter({ hasText: 'ada' });
  await key.getByText('ada', { exact: true }).click();
  await expect(key.getByLabel(t.signing.keyLine())).toHaveText(line);
  await key.getByRole('button', { name: t.signing.forget() }).click();
  await page.getByRole('dialog').getByRole('button', { name: t.signing.forget() }).click();
  await expect(page.getByText(t.signing.keysNone())).toBeVisible();
});
