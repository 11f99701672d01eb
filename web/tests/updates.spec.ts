// Signed updates of agents, with real ones and with ones that fail on demand: what is offered, who takes it, and how a rollout
// continues, stops and ends.
import type { Page } from '@playwright/test';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { answerTo } from './support/answer.ts';
import { expectAccessible, OF_COLOURS } from './support/accessible.ts';
import { Site, type Account } from './support/site.ts';
import { expectTargets } from './support/targets.ts';
import { enter, expect, expectFits, tab, test as base, told } from './support/test.ts';
import { expectWhole } from './support/widths.ts';
import { releasesIn, startMadeUp, startUpdatable, VERSION, type Behaviour, type Releases } from './support/updates.ts';
import * as t from './support/texts.ts';

interface Offering {
  site: Site;
  releases: Releases;
}

/** A service with a directory of agents, of this test alone. */
const test = base.extend<{ offering: Offering; user: Account }>({
  offering: async ({ origins, page }, use) => {
    const directory = join(process.env.TMPDIR ?? '/tmp', `signalbox-agents-${process.pid}-${Date.now()}`);
    mkdirSync(directory);
    const site = await Site.start('127.0.0.1:0', '--install-dir', directory);
    origins.push(site.origin);
    await use({ site, releases: releasesIn(directory, join(site.directory, 'release-keys')) });
    await page.close();
    await site.stop();
  },
  user: async ({ offering }, use) => use(await offering.site.account()),
});

const main = (page: Page) => page.getByRole('main');
const region = (page: Page, name: string) => main(page).getByRole('region', { name, exact: true });
const rowOf = (page: Page, name: string) => main(page).getByRole('row').filter({ hasText: name });
const press = (page: Page, name: string) => main(page).getByRole('button', { name, exact: true }).click();
const follow = (page: Page, name: string) => main(page).getByRole('link', { name, exact: true }).click();
const field = (page: Page, name: string) => main(page).getByLabel(name, { exact: true });
const rollout = (page: Page) => region(page, t.updates.rolloutOf({ version: VERSION }));
const waves = (page: Page) => rollout(page).getByRole('list', { name: t.updates.waves() }).locator(':scope > li');
/** An agent downloads the build, tries it, and stays for a while before it counts as updated. */
const UPDATED = { timeout: 100_000 };

/** Servers whose agents are made up, by their names and tags. */
async function makeUp(
  { site }: Offering,
  user: Account,
  page: Page,
  wanted: Record<string, { tags?: string[] } & Behaviour>,
): Promise<void> {
  const keys: [string, Behaviour][] = [];
  for (const [name, { tags = [], ...behaviour }] of Object.entries(wanted)) {
    const { key } = await site.server(user, name, tags);
    keys.push([key, behaviour]);
  }
  await startMadeUp(page, site, keys);
}

test('without a release, or without a server that takes it, the page says what to do', async ({
  page,
  context,
  offering,
  user,
}) => {
  const { site, releases } = offering;
  await enter(page, user, `${site.origin}/account`);
  await tab(page, t.account.updates()).click();
  await expect(page).toHaveURL(`${site.origin}/account/updates`);
  await expect(main(page).getByRole('heading', { name: t.updates.noRelease() })).toBeVisible();
  await expect(main(page)).toContainText('agent-release.json.sig');
  await expect(main(page)).toContainText(t.updates.noServers());
  await expect(main(page).getByRole('link', { name: t.updates.start() })).toBeHidden();
  await page.goto(`${site.origin}/account/updates?new=1`);
  await expect(main(page)).toContainText(t.updates.noReleaseShort());

  releases.offer();
  const server = await site.server(user, 'alpha');
  await site.agent(user, server);
  await page.goto(`${site.origin}/account/updates`);
  await expect(main(page)).toContainText(VERSION);
  await expect(main(page)).toContainText(t.updates.noneTakes());
  await expect(rowOf(page, 'alpha')).toContainText(t.updates.off());
  await expect(rowOf(page, 'alpha')).toContainText(t.updates.older());
  // What turns updates on is there without being asked for: the two lines by hand, and the one of the script.
  await expect(field(page, t.updates.policyLine())).toHaveText('updates = "signed"');
  await expect(field(page, t.updates.keysFile())).toHaveText('/etc/signalbox-agent/release_signers');
  const signers = field(page, t.signers.releasesLabel());
  await signers.fill('ada sk-webauthn ' + 'A'.repeat(103) + ' box.example.com');
  await expect(signers).toHaveAccessibleDescription(new RegExp(t.signers.faultPasskey()));
  await signers.fill(`ada=${releases.key}`);
  await expect(field(page, t.updates.scriptLine())).toHaveText(
    `curl -fsSL ${site.origin}/install.sh | sudo sh -s -- --updates signed --release-signers 'ada=${releases.key}'`,
  );
  await page.goto(`${site.origin}/account/updates?new=1`);
  await expect(main(page).getByRole('heading', { name: t.updates.noneTakes() })).toBeVisible();
  await expectAccessible(page);

  releases.spoilProgram();
  await makeUp(offering, user, await context.newPage(), { beta: {} });
  await page.goto(`${site.origin}/account/updates`);
  await expect(main(page)).toContainText(t.updates.incomplete());
  await expect(main(page).getByRole('listitem').filter({ hasText: t.updates.missing() })).toBeVisible();
  await expect(main(page).getByRole('link', { name: t.updates.start() })).toBeHidden();
  await page.goto(`${site.origin}/account/updates?new=1`);
  await expect(main(page)).toContainText(t.updates.incompleteShort());
});

test('a real agent takes a release in the first wave, and the rollout is paused, resumed and cancelled', async ({
  page,
  offering,
  user,
}) => {
  test.slow();
  const { site, releases } = offering;
  releases.offer();
  const canary = await site.server(user, 'canary-1', ['canary', 'web']);
  await startUpdatable(site, user, canary, releases.key);
  const other = await site.server(user, 'web-1', ['web']);
  await startUpdatable(site, user, other, releases.key);
  const off = await site.server(user, 'db-1');
  await site.agent(user, off);
  await site.server(user, 'next-one');
  await enter(page, user, `${site.origin}/account/updates`);
  await expect(rowOf(page, 'web-1')).toContainText(t.updates.signed());
  await expect(rowOf(page, 'db-1')).toContainText(t.updates.off());
  await expect(rowOf(page, 'next-one')).toContainText(t.updates.noAgent());
  await expect(main(page)).toContainText(t.updates.wouldUpdate({ count: 2 }));

  await follow(page, t.updates.start());
  await expect(main(page).getByRole('heading', { name: t.updates.newTitle({ version: VERSION }) })).toBeVisible();
  const left = region(page, t.updates.wontUpdate());
  await expect(left.getByRole('listitem').filter({ hasText: t.updates.leftOff() })).toContainText('db-1');
  await expect(left.getByRole('listitem').filter({ hasText: t.updates.leftUnknown() })).toContainText('next-one');
  const reach = region(page, t.updates.willUpdate()).getByRole('listitem');
  await expect(reach.nth(1)).toContainText('canary-1, web-1');
  await press(page, t.updates.startOn({ count: 2 }));
  const tags = field(page, t.updates.tags());
  await expect(tags).toHaveAccessibleDescription(t.updates.chooseTag());
  await expect(tags).toBeFocused();
  await field(page, t.updates.pauseMinutes()).fill('20000');
  await expect(field(page, t.updates.pauseMinutes())).toHaveAccessibleDescription(
    new RegExp(t.updates.faultPause().replaceAll('.', '\\.')),
  );
  await expectAccessible(page);
  // A tag that somebody typed may be on no server, and without a wave for all others some are in none.
  await tags.fill('nowhere');
  await tags.press('Enter');
  await expect(main(page)).toContainText(t.updates.reachesNone());
  await press(page, t.updates.removeOthers());
  await expect(left.getByRole('listitem').filter({ hasText: t.updates.leftNoWave() })).toContainText('canary-1, web-1');
  await field(page, t.updates.pauseMinutes()).fill('60');
  await press(page, t.updates.startOn({ count: 0 }));
  await expect(main(page).getByRole('alert')).toHaveText(t.updates.reachesNobody());
  await press(page, t.updates.removeWave({ number: 1 }));
  await press(page, t.updates.startOn({ count: 0 }));
  await expect(main(page).getByRole('alert')).toHaveText(t.updates.addOneWave());
  await press(page, t.updates.addOthers());
  await press(page, t.updates.addWave());
  await expect(tags).toBeFocused();
  await press(page, 'canary');
  await expect(reach.nth(0)).toContainText('canary-1');
  await expect(reach.nth(1)).toHaveText(/web-1/);
  const started = told(page, t.updates.started({ version: VERSION }));
  await press(page, t.updates.startOn({ count: 2 }));

  await started;
  await expect(waves(page).nth(0)).toContainText(t.updates.running());
  await expect(waves(page).nth(1)).toContainText(t.updates.waveLater());
  await expect(waves(page).nth(0)).toContainText(t.updates.updatedOf({ done: 1, total: 1 }), UPDATED);
  await expect(waves(page).nth(0)).toContainText(t.updates.waveDone());
  await expect(waves(page).nth(1)).toContainText(t.updates.waveNext());
  await expect(waves(page).nth(1)).toContainText(/Begins at .*\d\d:\d\d.*, in (59 min|1 h)/);
  await expect(rowOf(page, 'canary-1')).toContainText(t.updates.isCurrent(), { timeout: 60_000 });

  await press(page, t.updates.pause());
  await expect(rollout(page)).toContainText(t.updates.pausedText());
  await expectAccessible(page);
  await press(page, t.updates.resume());
  await expect(rollout(page)).not.toContainText(t.updates.pausedText());
  // There is one at a time.
  await page.goto(`${site.origin}/account/updates?new=1`);
  await expect(main(page).getByRole('heading', { name: t.updates.runsAlready() })).toBeVisible();
  await follow(page, t.updates.back());
  await press(page, t.updates.cancel());
  const question = page.getByRole('dialog', { name: t.updates.cancelTitle({ version: VERSION }) });
  await question.getByRole('button', { name: t.app.cancel(), exact: true }).click();
  await expect(rollout(page)).toContainText(t.updates.running());
  await press(page, t.updates.cancel());
  await question.getByRole('button', { name: t.updates.cancel(), exact: true }).click();

  // It stays in sight until the page is opened again.
  await expect(rollout(page)).toContainText(t.updates.cancelled());
  await page.reload();
  const earlier = main(page).getByRole('list', { name: t.updates.earlier() }).getByRole('listitem');
  await expect(earlier).toContainText(t.updates.cancelled());
  await expect(earlier).toContainText(t.updates.updatedOf({ done: 1, total: 2 }));
  await earlier.getByRole('link').click();
  await expect(page).toHaveURL(/\/account\/updates\?rollout=[0-9a-f-]{36}$/);
  await expect(waves(page).nth(1)).toContainText(t.updates.waveSkipped());
  await expect(rollout(page).getByRole('button', { name: t.updates.pause() })).toBeHidden();
  await page.goto(`${site.origin}/account/updates?rollout=00000000-0000-4000-8000-000000000000`);
  await expect(main(page).getByRole('heading', { name: t.updates.gone() })).toBeVisible();
});

test('a rollout stops at a failure, and says what each server answered', async ({ page, context, offering, user }) => {
  test.slow();
  offering.releases.offer();
  await makeUp(offering, user, await context.newPage(), {
    'canary-1': { tags: ['canary'], fails: 'it did not connect within 60 s' },
    'canary-2': { tags: ['canary'], refuses: 'unknown_signer' },
    'web-1': { failed: { version: '98.0.0', reason: 'it ended with code 1' } },
  });
  const { origin } = offering.site;
  await enter(page, user, `${origin}/account/updates`);
  await expect(rowOf(page, 'web-1')).toContainText(t.updates.failedVersion({ version: '98.0.0' }));
  await press(page, `${t.updates.filterFailed()} 1`);
  await expect(rowOf(page, 'canary-1')).toBeHidden();
  await expect(rowOf(page, 'web-1')).toBeVisible();
  await follow(page, t.updates.start());
  await press(page, 'canary');
  // Another page has begun one by now: the service says so, and nothing that was chosen is lost.
  const body = { waves: [{ tags: ['canary'] }], pause_minutes: 0 };
  const { id } = await offering.site.call<{ id: string }>('POST', '/updates/rollouts', user.token, body);
  // Paused, it waits for the page: else it would stop at a failure soon, and the page could begin another one.
  const step = (name: string) => offering.site.call('POST', `/updates/rollouts/${id}/${name}`, user.token);
  await step('pause');
  await press(page, t.updates.startOn({ count: 3 }));
  await expect(main(page).getByRole('alert')).toBeVisible();
  await expect(main(page).getByRole('button', { name: t.ui.removeTag({ tag: 'canary' }) })).toBeVisible();

  await step('resume');
  await page.goto(`${origin}/account/updates?rollout=${id}`);
  await expect(rollout(page).getByRole('alert')).toContainText('1 server failed, and at most 0 may.', UPDATED);
  const servers = waves(page).nth(0).getByRole('list').getByRole('listitem');
  await expect(servers.nth(0)).toContainText('canary-1');
  await expect(servers.nth(0)).toContainText('It did not connect within 60 s.');
  await expect(servers.nth(1)).toContainText(t.updates.refusedSigner());
  await expect(waves(page).nth(0)).toContainText('0 of 2 updated, 1 failed, 1 refused');

  await page.goto(`${origin}/account/updates`);
  await expect(rowOf(page, 'web-1')).toBeVisible();
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await expectAccessible(page, ...(colorScheme === 'dark' ? OF_COLOURS : []));
  }
  await expectTargets(page);
  await expectWhole(page);
  await page.setViewportSize({ width: 390, height: 844 });
  await expectFits(page);
});

test('who starts a rollout proves who they are where the service asks for it', async ({
  page,
  context,
  offering,
  user,
}) => {
  offering.releases.offer();
  await makeUp(offering, user, await context.newPage(), { 'web-1': {} });
  await enter(page, user, `${offering.site.origin}/account/updates?new=1`);
  // Without a tag there is one wave, for all.
  const reach = region(page, t.updates.willUpdate()).getByRole('listitem');
  await expect(reach).toHaveText(/web-1/);
  let asked = 0;
  await page.route('**/api/v1/updates/rollouts', async (route) => {
    asked += 1;
    const body = { detail: 'prove that it is you', code: 'step_up_required' };
    if (asked > 1) await route.continue();
    else await route.fulfill({ status: 403, json: body });
  });

  await press(page, t.updates.startOn({ count: 1 }));
  const dialog = page.getByRole('dialog', { name: t.factors.proveTitle() });
  await dialog.getByLabel(t.factors.password(), { exact: true }).fill(user.password);
  await dialog.getByRole('button', { name: t.factors.confirm() }).click();

  await expect(rollout(page)).toContainText(t.updates.running());
  expect(asked).toBe(2);
});

test('the settings of a server say whether its agent takes updates, and what did not work', async ({
  page,
  context,
  offering,
  user,
}) => {
  const { site } = offering;
  const taker = await site.server(user, 'alpha');
  await startMadeUp(await context.newPage(), site, [[taker.key, {}]]);
  const other = await site.server(user, 'beta');
  await site.agent(user, other);
  const failure = { version: '98.0.0', reason: 'it ended with code 1' };
  await page.route(`**/api/v1/servers/${taker.id}`, async (route) => {
    const response = await answerTo(route);
    const server = (await response.json()) as { agent: object };
    await route.fulfill({ response, json: { ...server, agent: { ...server.agent, failed_update: failure } } });
  });

  const item = main(page).getByRole('listitem').filter({ hasText: t.settings.takeUpdates() });
  await enter(page, user, `${site.origin}/servers/${taker.id}/settings`);
  await expect(item).toContainText(t.settings.allowed());
  await expect(main(page)).toContainText(t.settings.updateFailed({ version: '98.0.0' }));
  await expect(main(page)).toContainText('It ended with code 1.');
  await page.goto(`${site.origin}/servers/${other.id}/settings`);
  await expect(item).toContainText('updates = "signed"');
  await expect(main(page)).not.toContainText(t.settings.lastUpdate());
});

test('the line that installs an agent names who signs its releases', async ({ page, offering, user }) => {
  const { site, releases } = offering;
  await enter(page, user, `${site.origin}/servers/new`);
  await page.getByLabel(t.addServer.name()).fill('alpha');
  await page.getByRole('button', { name: t.addServer.next() }).click();
  const line = page.getByLabel(t.install.installLine());
  await expect(line).not.toContainText('--updates');

  await page.getByText(t.signers.updates(), { exact: true }).click();
  await page.getByLabel(t.signers.releasesLabel()).fill(`ada=${releases.key}`);

  await expect(line).toContainText(`--updates signed --release-signers 'ada=${releases.key}'`);
});
