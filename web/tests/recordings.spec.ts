// Terminals that an agent has recorded: listed, played and saved.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page } from '@playwright/test';
import { answerTo } from './support/answer.ts';
import { castOf, ID, idOf } from './support/recordings.ts';
import type { Account, ManagedServer, Site } from './support/site.ts';
import { enter, expect, FROM_A_SHELL, test } from './support/test.ts';
import * as t from './support/texts.ts';

const RECORDED = ['--terminal', 'on', '--record', 'on'];

const list = (page: Page) => page.getByRole('region', { name: t.recordings.recordings() });
const player = (page: Page) => page.getByRole('region', { name: t.recordings.player() });
const button = (within: Page | Locator, name: string) => within.getByRole('button', { name, exact: true });
/** What the emulator has drawn. */
const drawn = (page: Page) => player(page).locator('.xterm-rows');

/** A server whose agent begins with recordings. */
async function withRecordings(
  site: Site,
  account: Account,
  recordings: Record<string, string>,
): Promise<ManagedServer> {
  const server = await site.server(account);
  site.keepsRecordings(server, recordings);
  await site.agent(account, server, ...RECORDED);
  return server;
}

/** It plays. On a slow machine it has come to its end before anybody looks. */
async function expectStarted(page: Page): Promise<void> {
  const playing = button(player(page), t.recordings.pause());
  await expect(playing.or(button(player(page), t.recordings.playAgain()))).toBeVisible();
}

/** Stops what plays, by its key. It may have come to its end by now, where the key plays it again. */
async function pause(page: Page): Promise<void> {
  await expect(async () => {
    await page.keyboard.press('Space');
    await expect(button(player(page), t.recordings.play())).toBeVisible({ timeout: 1_000 });
  }).toPass();
}

test('a terminal is recorded, listed, played to its end and downloaded', async ({ page, account, site }) => {
  test.slow();
  const server = await site.server(account);
  await site.agent(account, server, ...RECORDED);
  await enter(page, account, `/servers/${server.id}/terminal`);
  await expect(list(page)).toContainText(t.recordings.none());
  await expect(page.getByText(t.terminal.auditedRecorded())).toBeVisible();
  await page.getByRole('checkbox', { name: t.terminal.screenReader() }).check();
  await button(page, t.terminal.openTerminal()).click();
  const terminal = page.getByRole('region', { name: t.terminal.label({ name: server.name }) });
  await expect(terminal.getByText(t.terminal.open(), { exact: true })).toBeVisible();
  await page.keyboard.type('echo $((6 * 7))hi\n');
  await expect(terminal.locator('.xterm-accessibility')).toContainText('42hi', FROM_A_SHELL);
  await page.keyboard.type('exit\n');
  await expect(terminal.getByText(t.terminal.ended(), { exact: true })).toBeVisible();
  await button(terminal, t.terminal.close()).click();

  const link = list(page).getByRole('link', {
    name: t.recordings.from({ name: account.username, address: '127.0.0.1' }),
  });
  await link.click();

  await button(player(page), t.recordings.times({ count: '4' })).click();
  await expect(button(player(page), t.recordings.playAgain())).toBeVisible();
  await expect(drawn(page)).toContainText('42hi');
  await expect(page).toHaveURL(/recording=/);
  const slider = player(page).getByRole('slider', { name: t.recordings.position() });
  await slider.press('Home');
  await expect(drawn(page)).not.toContainText('42hi');
  await slider.press('End');
  await expect(drawn(page)).toContainText('42hi');

  const [download] = await Promise.all([page.waitForEvent('download'), button(page, t.recordings.download()).click()]);
  const id = new URL(page.url()).searchParams.get('recording');
  expect(download.suggestedFilename()).toBe(`${id}.cast`);
  const file = readFileSync(await download.path());
  expect(JSON.parse(file.toString().split('\n')[0] ?? '')).toMatchObject({ version: 2 });
  let entry: { detail: { sha256: string } } | undefined;
  await site.until(async () => {
    [entry] = await site.call<{ detail: { sha256: string } }[]>(
      'GET',
      '/audit?action=terminal.recorded',
      account.token,
    );
    return entry !== undefined;
  }, 'the recording is in the audit log');
  const sha256 = createHash('sha256').update(file).digest('hex');
  expect(sha256).toBe(entry?.detail.sha256);
  await expect(page.getByText(sha256)).toBeVisible();
  await expect(page.getByText(t.recordings.sameHash())).toBeVisible();
  // What is saved was read once, to be played.
  expect(await site.call<unknown[]>('GET', '/audit?action=terminal.replay', account.token)).toHaveLength(1);
});

test('a recording is steered by keys, and does nothing but show what was shown', async ({
  page,
  context,
  account,
  site,
}) => {
  const server = await withRecordings(site, account, { [ID]: castOf('ada from ::1', Date.now()) });
  const sockets: string[] = [];
  page.on('websocket', (socket) => sockets.push(new URL(socket.url()).pathname));
  await page.addInitScript(() => {
    const deeds: string[] = [];
    Object.assign(window, { deeds, open: () => void deeds.push('open') });
    Object.assign(Clipboard.prototype, { writeText: async () => void deeds.push('copy') });
  });
  // Nothing moves before it is started.
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await enter(page, account, `/servers/${server.id}/terminal?recording=${ID}`);
  const slider = player(page).getByRole('slider', { name: t.recordings.position() });
  const at = (time: string) =>
    expect(slider).toHaveAttribute('aria-valuetext', t.recordings.timeOf({ time, total: '9 s' }));
  const rows = drawn(page).locator('> div');
  await expect(page.getByRole('heading', { name: t.recordings.titleBy({ by: 'ada from ::1' }) })).toBeVisible();
  await at('0 s');
  // It was found without the end that an agent writes.
  await expect(page.getByText(t.recordings.interruptedText())).toBeVisible();
  await expect(player(page).locator('[aria-live]')).toHaveAttribute('aria-live', 'off');
  await expect(rows).toHaveCount(24);
  await expect(player(page)).toContainText(t.recordings.shortened());

  await expect(button(player(page), t.recordings.play())).toBeFocused();
  await page.keyboard.press('Space');
  await expectStarted(page);
  await expect(drawn(page)).toContainText('systemctl status');
  await player(page).getByRole('group', { name: t.recordings.screen() }).click();
  await pause(page);

  await slider.press('Home');
  await slider.press('ArrowRight');
  await at('5 s');
  await expect(drawn(page)).toContainText('after the pause');
  await expect(drawn(page)).not.toContainText('after the resize');
  await slider.press('End');
  await at('9 s');
  await expect(drawn(page)).toContainText('last words');
  await expect(rows).toHaveCount(20);
  await slider.press('ArrowLeft');
  await at('3 s');
  await expect(rows).toHaveCount(24);
  await expect(drawn(page)).not.toContainText('after the pause');
  await page.keyboard.press('Space');
  await expectStarted(page);
  await pause(page);
  const speed = button(player(page), t.recordings.times({ count: '2' }));
  await speed.click();
  await expect(speed).toHaveAttribute('aria-pressed', 'true');

  // What is typed goes nowhere, Tab leads on, and a word that is selected can be copied.
  await slider.press('End');
  await player(page).getByRole('group', { name: t.recordings.screen() }).focus();
  await page.keyboard.type('typed');
  await page.keyboard.press('Tab');
  await expect(button(player(page), t.recordings.playAgain())).toBeFocused();
  await context.grantPermissions(['clipboard-read']);
  await drawn(page)
    .getByText('last words')
    .dblclick({ force: true, position: { x: 4, y: 4 } });
  await page.keyboard.press('Control+C');
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe('last');
  const link = await drawn(page).getByText('a link').boundingBox();
  if (!link) throw new Error('there is no link');
  await page.mouse.move(link.x + 20, link.y + 5, { steps: 5 });
  await page.mouse.click(link.x + 24, link.y + 5);
  expect(await page.evaluate(() => (window as unknown as { deeds: string[] }).deeds)).toEqual([]);
  await expect(drawn(page)).not.toContainText('typed');
  await expect(player(page)).not.toContainText('a marker');
  await expect(page).not.toHaveTitle(/a title/);
  expect(sockets.filter((path) => path.includes('terminal'))).toEqual([]);
});

test('what is selected elsewhere is copied, not what is selected in a recording', async ({
  page,
  context,
  account,
  site,
}) => {
  const server = await withRecordings(site, account, { [ID]: castOf('ada from ::1', Date.now()) });
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await enter(page, account, `/servers/${server.id}/terminal?recording=${ID}`);
  // What the list says comes later, and moves the player.
  await expect(page.getByText(t.recordings.interruptedText())).toBeVisible();
  await player(page).getByRole('slider').press('End');
  const copied = async () => {
    await page.keyboard.press('Control+C');
    return page.evaluate(() => navigator.clipboard.readText());
  };
  await drawn(page)
    .getByText('last words')
    .dblclick({ force: true, position: { x: 4, y: 4 } });
  expect(await copied()).toBe('last');

  // A field has a selection of its own, and so has the page.
  await page.keyboard.press('Control+K');
  await page.getByRole('combobox').fill('written here');
  await page.keyboard.press('Control+A');
  expect(await copied()).toBe('written here');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  await expect(page.getByRole('combobox')).toBeHidden();
  const heading = page.getByRole('heading', { name: t.recordings.titleBy({ by: 'ada from ::1' }) });
  await heading.evaluate((element) => getSelection()?.selectAllChildren(element));
  expect(await copied()).toBe(t.recordings.titleBy({ by: 'ada from ::1' }));

  await heading.evaluate(() => getSelection()?.removeAllRanges());
  expect(await copied()).toBe('last');
});

test('a file whose hash the list does not have is shown with a warning', async ({ page, account, site }) => {
  const server = await withRecordings(site, account, { [ID]: castOf('ada from ::1', Date.now()) });
  await page.route(
    (url) => url.pathname.endsWith('/recordings'),
    async (route) => {
      const response = await answerTo(route);
      const listed = (await response.json()) as { sha256: string }[];
      await route.fulfill({ response, json: listed.map((one) => ({ ...one, sha256: '0'.repeat(64) })) });
    },
  );

  await enter(page, account, `/servers/${server.id}/terminal?recording=${ID}`);

  await expect(page.getByText(t.recordings.otherHash())).toBeVisible();
  await expect(page.getByText(t.recordings.sameHash())).toBeHidden();
  await expect(player(page)).toBeVisible();
});

test('the wheel scrolls the page over a program that has the whole screen and wants the mouse', async ({
  page,
  account,
  site,
}) => {
  const lines = [
    { version: 2, width: 80, height: 24, timestamp: Math.floor(Date.now() / 1000), by: 'ada from ::1' },
    [0.1, 'o', '\u001b[?1049h\u001b[?1000;1006h\u001b[?1002hthe whole screen'],
  ];
  const cast = `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`;
  const server = await withRecordings(site, account, { [ID]: cast });
  await page.setViewportSize({ width: 900, height: 400 });
  await enter(page, account, `/servers/${server.id}/terminal?recording=${ID}`);
  await expect(drawn(page)).toContainText('the whole screen');
  // What the list says comes later, and may scroll the page by itself.
  await expect(page.getByText(t.recordings.interruptedText())).toBeVisible();
  const scrolled = () =>
    page.evaluate(() => [...document.querySelectorAll('*')].reduce((sum, element) => sum + element.scrollTop, 0));
  await drawn(page).hover({ force: true });
  const before = await scrolled();

  await page.mouse.wheel(0, before > 0 ? -60 : 60);

  await expect.poll(scrolled).not.toBe(before);
});

test('many recordings come in pages, the newest first', async ({ page, account, site }) => {
  const hour = 3_600_000;
  const casts = Array.from({ length: 23 }, (_, index) => castOf(`person-${index} from ::1`, Date.now() - index * hour));
  const server = await withRecordings(
    site,
    account,
    Object.fromEntries(casts.map((cast, index) => [idOf(index), cast])),
  );
  await enter(page, account, `/servers/${server.id}/terminal`);
  const links = list(page).getByRole('link', { name: t.recordings.interrupted() });
  await expect(links).toHaveCount(20);
  await expect(links.first()).toContainText(t.recordings.from({ name: 'person-0', address: '::1' }));
  await expect(links.first()).toContainText('5 min 12 s');

  await button(list(page), t.recordings.showMore()).click();

  await expect(links).toHaveCount(23);
  await expect(links.last()).toContainText('person-22');
  await expect(button(list(page), t.recordings.showMore())).toBeHidden();
  await links.last().click();
  await expect(page.getByRole('heading', { name: /person-22/ })).toBeVisible();
  await page.getByRole('link', { name: t.recordings.back() }).click();
  await expect(links).toHaveCount(20);
});

test('what is missing is said: no policy, no agent, no recording, no right', async ({ page, account, site, visit }) => {
  const off = await site.server(account);
  await site.agent(account, off, '--terminal', 'on');
  await enter(page, account, `/servers/${off.id}/terminal`);
  await expect(list(page)).toContainText(t.recordings.off());
  await expect(page.getByText(t.terminal.audited())).toBeVisible();
  await list(page).getByText(t.recordings.howTo()).click();
  await expect(list(page).getByText('record = "on"', { exact: true })).toBeVisible();

  const server = await site.server(account);
  site.keepsRecordings(server, { [ID]: castOf('ada from ::1', Date.now()) });
  const agent = await site.agent(account, server, ...RECORDED);
  await page.goto(`/servers/${server.id}/terminal?recording=${idOf(7)}`);
  await expect(page.getByRole('heading', { name: t.recordings.gone() })).toBeVisible();
  await page.goto(`/servers/${server.id}/terminal?recording=nonsense`);
  await expect(page.getByRole('heading', { name: t.recordings.gone() })).toBeVisible();

  await agent.end('SIGTERM');
  await page.goto(`/servers/${server.id}/terminal`);
  await expect(list(page)).toContainText(t.recordings.offline());
  await page.goto(`/servers/${server.id}/terminal?recording=${ID}`);
  await expect(page.getByText(t.recordings.offline())).toBeVisible();
  await site.agent(account, server, ...RECORDED);
  await expect(player(page)).toBeVisible();

  const bob = await site.account();
  const subject = { username: bob.username };
  await site.call('POST', '/grants', account.token, {
    subject,
    scope: { server_id: server.id },
    role: 'operator',
    rights: ['commands'],
  });
  const other = await visit(bob, `/servers/${server.id}/terminal?recording=${ID}`);
  await expect(other.getByRole('heading', { name: t.access.notAllowed() })).toBeVisible();
  await expect(list(other)).toBeHidden();
  await expect(player(other)).toBeHidden();
});

test('a file that somebody changed is played as far as it can be, and saved as it is', async ({
  page,
  account,
  site,
}) => {
  const cast = castOf('ada from ::1', Date.now());
  const server = await withRecordings(site, account, { [ID]: cast, [idOf(1)]: cast, [idOf(2)]: cast });
  const file = (id: string) => join(site.stateOf(server), 'recordings', `${id}.cast`);
  // Its agent has read all three by then: what it finds without an end at its start, it completes.
  await site.until(async () => {
    const listed = await site.call<unknown[]>('GET', `/servers/${server.id}/recordings`, account.token);
    return listed.length === 3;
  }, 'the recordings are listed');
  writeFileSync(file(ID), `${cast}nonsense\n[400, "o", "cut of`);
  writeFileSync(file(idOf(1)), '{"version":3}\n');
  writeFileSync(file(idOf(2)), cast.split('\n')[0] ?? '');
  await page.emulateMedia({ reducedMotion: 'reduce' });

  await enter(page, account, `/servers/${server.id}/terminal?recording=${ID}`);
  await expect(page.getByText(t.recordings.unreadable({ count: 2 }))).toBeVisible();
  await player(page).getByRole('slider').press('End');
  await expect(drawn(page)).toContainText('last words');

  await page.goto(`/servers/${server.id}/terminal?recording=${idOf(1)}`);
  await expect(page.getByRole('heading', { name: t.recordings.notPlayable() })).toBeVisible();
  const [download] = await Promise.all([page.waitForEvent('download'), button(page, t.recordings.download()).click()]);
  expect(readFileSync(await download.path(), 'utf8')).toBe('{"version":3}\n');

  await page.goto(`/servers/${server.id}/terminal?recording=${idOf(2)}`);
  await expect(page.getByRole('heading', { name: t.recordings.nothingShown() })).toBeVisible();
});

test('a recording is read once the person has proved who they are', async ({ page, account, site }) => {
  const server = await withRecordings(site, account, { [ID]: castOf('ada from ::1', Date.now()) });
  // The service asks for a new proof after a minute at the earliest.
  let asked = 0;
  await page.route(`**/recordings/${ID}`, async (route) => {
    asked += 1;
    const body = { detail: 'prove that it is you', code: 'step_up_required' };
    if (asked === 2 || asked > 3) await route.continue();
    else await route.fulfill({ status: 403, json: body });
  });
  const dialog = page.getByRole('dialog', { name: t.factors.proveTitle() });

  await enter(page, account, `/servers/${server.id}/terminal?recording=${ID}`);
  await dialog.getByLabel(t.factors.password(), { exact: true }).fill(account.password);
  await dialog.getByRole('button', { name: t.factors.confirm() }).click();
  await expect(player(page)).toBeVisible();

  await page.reload();
  await dialog.getByRole('button', { name: t.factors.cancel() }).click();
  const note = page.getByRole('alert').filter({ hasText: 'Prove that it is you' });
  await expect(note).toBeVisible();
  await expect(player(page)).toBeHidden();
  await button(note, t.app.tryAgain()).click();
  await expect(player(page)).toBeVisible();
});
