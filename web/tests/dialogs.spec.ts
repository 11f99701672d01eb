// What stands over a page is as accessible as the page, and whole on a phone.
import type { Page } from '@playwright/test';
import { expectAccessible, OF_COLOURS } from './support/accessible.ts';
import { address } from './support/pages.ts';
import { enter, expect, test, type Control } from './support/test.ts';
import * as t from './support/texts.ts';
import { expectWholeOnPhone } from './support/widths.ts';

interface Dialog {
  name: string;
  path: string;
  open: (page: Page, crowd: Control) => Promise<void>;
  /** The button that closes it, where a slip must not: what it shows is shown once. */
  closes?: string;
}

const main = (page: Page) => page.getByRole('main');
const press = (name: string | RegExp) => (page: Page) => main(page).getByRole('button', { name }).first().click();
const within = (page: Page) => page.getByRole('dialog');

/** Writes into a new silence or channel and wants to leave. */
async function leaveHalfWritten(page: Page, field: string): Promise<void> {
  await within(page)
    .getByLabel(new RegExp(`^${field}`))
    .fill('half written');
  await page.keyboard.press('Escape');
  await expect(within(page).last()).toContainText(t.channels.leaveText());
}

const dialogs: Dialog[] = [
  { name: 'a new key', path: '/servers/SERVER/keys', open: press(t.keys.create()) },
  {
    name: 'a key that is shown once',
    path: '/servers/SERVER/keys',
    open: async (page) => {
      await press(t.keys.create())(page);
      await within(page).getByRole('button', { name: t.keys.submit(), exact: true }).click();
      await within(page).getByText(t.keys.install(), { exact: true }).click();
      await expect(within(page).getByLabel(t.install.installLine())).toBeVisible();
    },
    closes: t.keys.saved(),
  },
  { name: 'a revocation', path: '/servers/SERVER/keys', open: press(t.keys.revokeTitle({ name: '' }).trim()) },
  {
    name: 'a deletion',
    path: '/servers/SERVER/settings',
    open: async (page) => {
      // The tags of other servers come later, above the button, and move it.
      await expect(main(page).getByRole('button', { name: 'northern-europe', exact: true })).toBeVisible();
      await press(t.settings.deleteServer())(page);
    },
  },
  { name: 'who has access', path: '/servers/SERVER', open: press(t.server.share()) },
  {
    name: 'a new grant',
    path: '/servers/SERVER',
    open: async (page) => {
      await press(t.server.share())(page);
      await within(page).getByRole('button', { name: t.share.give() }).click();
      await within(page).getByRole('radio', { name: t.access.operator() }).check();
    },
  },
  {
    name: 'an end of access',
    path: '/servers/SERVER',
    open: async (page) => {
      await press(t.server.share())(page);
      await within(page)
        .getByRole('button', { name: t.like(t.share.endOf({ subject: '{}', where: '{}' })) })
        .first()
        .click();
      await expect(within(page)).toHaveCount(2);
    },
  },
  { name: 'whom to ask', path: '/servers/SHARED', open: press(t.server.access()) },
  { name: 'a new signing key', path: '/account/security', open: press(t.signing.makeKey()) },
  { name: 'a new token', path: '/account/tokens', open: press(t.tokens.create()) },
  {
    name: 'a revocation of a token',
    path: '/account/tokens',
    open: press(t.like(t.tokens.revokeTitle({ name: '{}' }))),
  },
  { name: 'a new team', path: '/account/teams', open: press(t.teams.create()) },
  {
    name: 'another name of a team',
    path: '/account/teams',
    open: press(t.like(t.teams.renameOf({ team: '{}' }))),
  },
  { name: 'a deletion of a team', path: '/account/teams', open: press(t.like(t.teams.removeOf({ team: '{}' }))) },
  { name: 'a time of the charts', path: '/servers/SERVER', open: press(t.overview.custom()) },
  {
    name: 'a restart of a container',
    path: '/servers/SERVER/containers',
    open: press(t.like(t.containers.act({ verb: t.containers.restart(), name: '{}' }))),
  },
  { name: 'a new threshold', path: '/alerts?view=thresholds', open: press(t.serverAlerts.addRule()) },
  {
    name: 'a change of a threshold',
    path: '/alerts?view=thresholds',
    open: press(t.like(t.thresholds.editRule({ rule: '{}' }))),
  },
  {
    name: 'a deletion of a threshold',
    path: '/alerts?view=thresholds',
    open: press(t.like(t.thresholds.deleteRule({ rule: '{}' }))),
  },
  { name: 'a silence of an alert', path: '/alerts/ALERT', open: press(t.incident.silence()) },
  {
    name: 'a deletion of a note',
    path: '/alerts/ALERT',
    // By the keyboard: the containers above it are read again once the chart knows the peak, and long names take two lines.
    open: (page) =>
      main(page)
        .getByRole('button', { name: t.like(t.annotations.remove({ title: '{}' })) })
        .first()
        .press('Enter'),
  },
  { name: 'a new silence', path: '/account/silences', open: press(t.silences.add()) },
  {
    name: 'a silence that is left half written',
    path: '/account/silences',
    open: async (page) => {
      await press(t.silences.add())(page);
      await leaveHalfWritten(page, t.silences.reason());
    },
  },
  { name: 'a change of a silence', path: '/account/silences', open: press(t.silences.change()) },
  {
    name: 'a deletion of a silence',
    path: '/account/silences',
    open: (page) => main(page).getByRole('button', { name: t.silences.remove(), exact: true }).first().click(),
  },
  { name: 'a new channel', path: '/account/notifications', open: press(t.channels.add()) },
  {
    name: 'a secret of a channel, which is shown once',
    path: '/account/notifications',
    open: async (page) => {
      await press(t.channels.add())(page);
      const dialog = within(page);
      await dialog.getByLabel(t.channels.kind()).selectOption({ label: t.channels.webhook() });
      await dialog.getByLabel(t.channels.name(), { exact: true }).fill('the webhook of the people on call at night');
      await dialog.getByLabel(t.channels.address()).fill('https://hooks.example.com/alerts');
      await dialog.getByRole('button', { name: t.channels.add() }).click();
      await expect(dialog.getByRole('heading', { name: t.channels.keepSecret() })).toBeVisible();
    },
    closes: t.channels.saved(),
  },
  {
    name: 'a change of a channel',
    path: '/account/notifications',
    open: press(t.channels.changeTitle({ name: 'on-call' })),
  },
  {
    name: 'a channel that is left half written',
    path: '/account/notifications',
    open: async (page) => {
      await press(t.channels.add())(page);
      await leaveHalfWritten(page, t.channels.name());
    },
  },
  {
    name: 'a deletion of a channel',
    path: '/account/notifications',
    open: press(t.channels.remove({ name: 'on-call' })),
  },
  { name: 'other logs', path: '/logs?log=SERVER:file:LOG', open: press(t.mix.addLogs()) },
  { name: 'the series of a chart', path: '/explore', open: press(t.explore.addSeries()) },
  { name: 'the servers of a chart', path: '/explore?s=cpu_percent', open: press(t.explore.chooseServers()) },
  { name: 'a new view', path: '/explore?s=cpu_percent', open: press(t.explore.saveView()) },
  { name: 'a deletion of a view', path: '/explore?view=VIEW', open: press(t.explore.deleteView()) },
  { name: 'a new dashboard', path: '/dashboards', open: press(t.dashboards.newDashboard()) },
  { name: 'the views of a dashboard', path: '/dashboards/BOARD?edit=1', open: press(t.dashboards.addView()) },
  {
    name: 'changes of a dashboard that are discarded',
    path: '/dashboards/BOARD?edit=1',
    open: async (page) => {
      await press(t.dashboards.wider())(page);
      await press(t.dashboards.cancel())(page);
    },
  },
  { name: 'a deletion of a dashboard', path: '/dashboards/BOARD', open: press(t.dashboards.deleteTitle()) },
  {
    name: 'a bulk run',
    path: '/run',
    open: async (page, crowd) => {
      await main(page).getByRole('checkbox', { name: crowd.server.name }).check();
      await page.getByRole('textbox', { name: t.run.command() }).fill('uptime');
      await press(t.run.runOn({ count: 1 }))(page);
    },
  },
  { name: 'a signature of what waits', path: '/run/APPROVAL', open: press(t.approvals.addAnother()) },
  { name: 'an end of what waits', path: '/run/APPROVAL', open: press(t.approvals.withdraw()) },
  {
    name: 'a deletion of a schedule',
    path: '/run?view=schedules&schedule=SCHEDULE',
    open: press(t.schedules.remove()),
  },
  { name: 'how to become a signer', path: '/servers/SIGNED/settings', open: press(t.settings.beSigner()) },
  {
    name: 'a command that others sign, too',
    path: '/servers/SIGNED/commands',
    open: async (page) => {
      await page.getByRole('textbox', { name: t.commands.command() }).fill('uptime');
      await main(page).getByRole('button', { name: t.commands.run(), exact: true }).click();
    },
  },
  { name: 'a repeated bulk run', path: '/run/BATCH', open: press(t.run.again()) },
  {
    name: 'a result of a bulk run',
    path: '/run/BATCH',
    open: (page, crowd) => main(page).getByRole('row').getByRole('button', { name: crowd.server.name }).click(),
  },
  { name: 'the keys', path: '/account', open: (page) => page.locator('body').press('?') },
  { name: 'the palette', path: '/account', open: (page) => page.keyboard.press('Control+k') },
];

for (const { name, path, open, closes } of dialogs) {
  test(`the dialog of ${name} is accessible in light and dark, and whole on a phone`, async ({ page, site, crowd }) => {
    await enter(page, crowd.account, await address(path, site, crowd));
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
    await open(page, crowd);
    const dialog = within(page).last();
    await expect(dialog).toBeVisible();

    await page.emulateMedia({ colorScheme: 'light' });
    await expectAccessible(page);
    await page.emulateMedia({ colorScheme: 'dark' });
    await expectAccessible(page, ...OF_COLOURS);
    await expectWholeOnPhone(page, dialog);

    const count = await within(page).count();
    if (closes) await dialog.getByRole('button', { name: closes, exact: true }).click();
    else await page.keyboard.press('Escape');
    await expect(within(page)).toHaveCount(count - 1);
  });
}

test('the choice of columns is accessible in light and dark', async ({ page, crowd }) => {
  await enter(page, crowd.account, '/?view=table');
  await page.getByRole('button', { name: t.fleet.columns() }).click();
  await expect(page.getByRole('group', { name: t.fleet.columns() })).toBeVisible();

  await page.emulateMedia({ colorScheme: 'light' });
  await expectAccessible(page);
  await page.emulateMedia({ colorScheme: 'dark' });
  await expectAccessible(page, ...OF_COLOURS);
});
