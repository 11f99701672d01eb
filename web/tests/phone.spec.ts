// The main things can be done on a phone, by touch.
import type { Page } from '@playwright/test';
import { expectAccessible } from './support/accessible.ts';
import { address } from './support/pages.ts';
import { enter, expect, expectFits, navigation, tab, test } from './support/test.ts';
import * as t from './support/texts.ts';

test.use({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });

/** Nothing else lies over it, and it is no smaller than a fingertip in one direction at least. */
async function expectTouchable(page: Page, name: string): Promise<void> {
  const box = await page.getByRole('button', { name, exact: true }).boundingBox();
  expect(Math.max(box?.width ?? 0, box?.height ?? 0)).toBeGreaterThanOrEqual(24);
}

test('a server is found in the fleet and its charts are read', async ({ page, control }) => {
  await enter(page, control.account);
  await page.getByRole('article').getByRole('link', { name: control.server.name, exact: true }).tap();

  await expect(page.getByRole('heading', { name: control.server.name, level: 1 })).toBeVisible();
  await expect(page.locator('figure canvas').first()).toBeVisible();
  await expectFits(page);
});

test('a command is run, and a container restarted', async ({ page, control, site }) => {
  const name = site.unique(`by-touch-${process.pid}`);
  const id = await control.docker.run(name);
  const startedAt = await control.docker.startedAt(id);
  await enter(page, control.account, `/servers/${control.server.id}`);

  await tab(page, t.server.commands()).tap();
  await page.getByRole('textbox', { name: t.commandParts.command() }).fill('echo by touch');
  await page.getByRole('button', { name: t.app.run(), exact: true }).tap();
  await expect(page.getByRole('region', { name: t.commandParts.output() })).toContainText('by touch');
  await expectFits(page);

  await tab(page, t.fleet.containers()).tap();
  await page.getByRole('button', { name: t.containers.act({ verb: t.containers.restart(), name }) }).tap();
  await page.getByRole('dialog').getByRole('button', { name: t.containers.restart(), exact: true }).tap();
  await expect.poll(() => control.docker.startedAt(id)).not.toBe(startedAt);
  await expectFits(page);
});

test('a server is added', async ({ page, account }) => {
  await enter(page, account);
  await page.getByRole('main').getByRole('link', { name: t.app.addServer() }).first().tap();
  await page.getByLabel(t.addServer.name()).fill('pocket');
  await expectTouchable(page, t.addServer.next());
  await page.getByRole('button', { name: t.addServer.next() }).tap();

  await expect(page.getByLabel(t.install.installLine())).toBeVisible();
  await expectFits(page);
});

test('every place of the navigation is reached, and the way out', async ({ page, account }) => {
  await enter(page, account);
  for (const [name, address] of [
    [t.app.alerts(), /\/alerts$/],
    [t.app.run(), /\/run$/],
    [t.app.account(), /\/account$/],
    [t.app.fleet(), /\/$/],
  ] as const) {
    await navigation(page).getByRole('link', { name, exact: true }).tap();
    await expect(page).toHaveURL(address);
  }

  await navigation(page).getByRole('link', { name: t.app.account() }).tap();
  await page.getByRole('main').getByRole('button', { name: t.app.signOut() }).tap();
  await expect(page).toHaveURL(/sign-in/);
});

test('a dialog fits, with its buttons in sight', async ({ page, account, site }) => {
  const server = await site.server(account);
  await enter(page, account, `/servers/${server.id}/keys`);
  await page.getByRole('button', { name: t.keys.create() }).tap();

  const create = page.getByRole('dialog').getByRole('button', { name: t.keys.submit() });
  await expect(create).toBeInViewport();
  await create.tap();
  await expect(page.getByRole('dialog').getByRole('button', { name: t.channels.saved() })).toBeInViewport();
  await expectFits(page);
});

test('entries of the audit log and deliveries are cards, which nobody scrolls sideways', async ({
  page,
  site,
  crowd,
}) => {
  for (const [path, name] of [
    ['/account/audit', t.audit.entries()],
    ['/account/notifications', t.channels.messages()],
  ] as const) {
    await enter(page, crowd.account, await address(path, site, crowd));
    const list = page.getByRole('region', { name, exact: true });
    await expect(list.getByRole('row').nth(1)).toBeVisible();

    expect(await list.evaluate((box) => box.scrollWidth - box.clientWidth)).toBeLessThanOrEqual(0);
    const cells = await list.getByRole('cell').all();
    expect(cells.length).toBeGreaterThan(0);
    for (const cell of cells) {
      const box = await cell.boundingBox();
      if (!box) throw new Error('a cell has no place');
      expect(box.x + box.width).toBeLessThanOrEqual(390);
    }
  }
});

test('the timeline, Explore and logs are behind "More"', async ({ page, account }) => {
  await enter(page, account);
  for (const [name, address] of [
    [t.app.timeline(), /\/timeline$/],
    [t.app.explore(), /\/explore$/],
    [t.app.dashboards(), /\/dashboards$/],
    [t.app.logs(), /\/logs$/],
  ] as const) {
    await navigation(page).getByRole('button', { name: t.app.more(), exact: true }).tap();
    const dialog = page.getByRole('dialog', { name: t.app.morePlaces() });
    await expect(dialog).toBeVisible();
    await expectAccessible(page);
    await dialog.getByRole('link', { name, exact: true }).tap();
    await expect(page).toHaveURL(address);
    await expect(dialog).toBeHidden();
  }
});
