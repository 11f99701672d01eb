// The fleet with many servers: the dense table, small cards, groups, totals, and what it says of a service that was away.
import type { Page } from '@playwright/test';
import { expectAccessible } from './support/accessible.ts';
import { expectNothingGreen, greens } from './support/greens.ts';
import type { Account, Site } from './support/site.ts';
import { BACK, enter, expect, expectFits, forgive, navigation, test } from './support/test.ts';
import * as t from './support/texts.ts';

/** What a browser writes to the console when a socket finds nobody. */
const UNREACHED = /^WebSocket connection to .* failed/;

async function add(site: Site, account: Account, count: number, tags: string[] = []): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const name = `rack-${String(index).padStart(3, '0')}`;
    await site.call('POST', '/servers', account.token, { name, host: 'rack.example.com', tags });
  }
}

const grid = (page: Page) => page.getByRole('grid', { name: t.fleet.allServers() });

/** Texts of the list that are cut, or stand outside of their card. */
const cut = (page: Page) =>
  page.getByRole('region', { name: t.fleet.servers(), exact: true }).evaluate((list) =>
    [...list.querySelectorAll<HTMLElement>('dd, dt, b, .number, .value, .badge, [role=columnheader]')]
      .filter((element) => !element.closest('.sr-only') && element.getClientRects().length > 0)
      .filter((element) => {
        const box = element.closest('.card')?.getBoundingClientRect();
        const { right, bottom } = element.getBoundingClientRect();
        const isOutside = box !== undefined && (right > box.right + 1 || bottom > box.bottom + 1);
        const isCut = element.clientWidth > 0 && element.scrollWidth > element.clientWidth + 1;
        return isOutside || isCut;
      })
      .map((element) => element.textContent),
  );

test('a dozen servers are cards, more are a table, and a choice is kept', async ({ page, account, site }) => {
  await add(site, account, 12);
  await enter(page, account);
  await expect(page.getByRole('article')).toHaveCount(12);
  await expect(grid(page)).toHaveCount(0);

  await site.server(account, 'thirteenth');
  await page.reload();
  await expect(grid(page)).toBeVisible();
  await expect(grid(page)).toHaveAttribute('aria-rowcount', '14');
  await page.getByRole('button', { name: t.fleet.cards() }).click();
  await expect(page.getByRole('article').first()).toBeVisible();

  await page.goto('/alerts');
  await navigation(page).getByRole('link', { name: t.app.fleet(), exact: true }).click();
  await expect(page.getByRole('article').first()).toBeVisible();
  await expect(grid(page)).toHaveCount(0);
});

test('columns are chosen with the keyboard, and kept', async ({ page, account, site }) => {
  await site.agent(account, await site.server(account, 'alpha'));
  await enter(page, account, '/?view=table');
  const heading = (name: string) => page.getByRole('columnheader', { name, exact: true });
  await expect(heading(t.fleet.load())).toBeVisible();
  await expect(heading(t.fleet.host())).toBeHidden();

  const opener = page.getByRole('button', { name: t.fleet.columns() });
  await opener.focus();
  await page.keyboard.press('Enter');
  const chooser = page.getByRole('group', { name: t.fleet.columns() });
  await expect(chooser.getByRole('checkbox').first()).toBeFocused();
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowDown');
  await chooser.getByRole('checkbox', { name: t.fleet.outgoing() }).focus();
  await page.keyboard.press('Space');
  await chooser.getByRole('checkbox', { name: t.fleet.host() }).focus();
  await page.keyboard.press('Space');
  await page.keyboard.press('Escape');

  await expect(chooser).toBeHidden();
  await expect(opener).toBeFocused();
  await expect(heading(t.fleet.outgoing())).toBeHidden();
  await page.setViewportSize({ width: 1680, height: 900 });
  await page.reload();
  await expect(heading(t.fleet.host())).toBeVisible();
  await expect(heading(t.fleet.outgoing())).toBeHidden();
  await expect(page.getByRole('row', { name: /alpha/ })).toContainText('127.0.0.1');

  await opener.click();
  await chooser.getByRole('button', { name: t.fleet.usualColumns() }).click();
  await expect(heading(t.fleet.outgoing())).toBeVisible();
  await expect(heading(t.fleet.host())).toBeHidden();
});

test('no value is cut and nothing overflows, at any width', async ({ page, account, site, control }) => {
  for (const name of ['counted', 'counted-too']) await control.docker.run(`${site.unique(name)}-${process.pid}`);
  await site.agent(
    account,
    await site.server(account, 'a-server-with-a-name-that-is-longer-than-any-card', ['web', 'eu']),
    ...['--docker', 'read', '--docker-host', control.docker.host],
  );
  await site.server(account, 'unborn');
  await enter(page, account, '/?view=cards');
  await expect(page.getByRole('article').first()).toContainText(/CPU\s*\d/);
  await expect(page.getByRole('article').first()).toContainText(/\d+ containers/);

  for (const view of ['cards', 'table'] as const) {
    await page.getByRole('button', { name: t.fleet[view]() }).click();
    for (const width of [390, 768, 1024, 1100, 1200, 1280, 1440, 1680, 1920]) {
      await page.setViewportSize({ width, height: 900 });
      await expect(page.getByText(/^\d+ %$/).first()).toBeVisible();
      await expect.poll(() => cut(page), `${view} at ${width}`).toEqual([]);
      await expectFits(page);
    }
  }
});

test('a phone shows the shares of a server and its status as a mark, and tags stand whole or not at all', async ({
  page,
  account,
  site,
}) => {
  const tags = ['production', 'web', 'eu-central', 'on-call', 'payments', 'customer-facing', 'first-line', 'reviewed'];
  const [here, gone] = [await site.server(account, 'alpha', tags), await site.server(account, 'omega')];
  await site.agent(account, here);
  const agent = await site.agent(account, gone);
  await agent.end();
  await page.setViewportSize({ width: 390, height: 844 });
  await enter(page, account, '/?view=table');

  const heads = grid(page).getByRole('columnheader');
  await expect(heads).toContainText([t.fleet.name(), t.fleet.cpu(), t.fleet.memory(), t.fleet.diskShort()]);
  await expect(heads).toHaveCount(4);
  const named = (name: RegExp) => grid(page).getByRole('rowheader', { name });
  await expect(named(new RegExp(`^${t.status.online()}.*alpha`))).toBeVisible();
  await expect(named(new RegExp(`^${t.status.offline()}.*omega`))).toBeVisible();
  const borders = () =>
    grid(page)
      .getByRole('rowheader')
      .locator('.dot')
      .evaluateAll((marks) => new Set(marks.map((mark) => getComputedStyle(mark).borderTopWidth)).size);
  // Told apart by their forms, too.
  await expect.poll(borders).toBe(2);

  await page.setViewportSize({ width: 1440, height: 900 });
  await expect(grid(page).getByRole('gridcell', { name: t.status.online() })).toBeVisible();
  await expect(named(/alpha/)).not.toContainText('production');

  await page.setViewportSize({ width: 1728, height: 900 });
  await expect(named(/alpha/)).toContainText('production');
  const inSight = await named(/alpha/)
    .locator('.tags')
    .evaluate((box) => {
      const { bottom, right } = box.getBoundingClientRect();
      const shown = [...box.children].filter((tag) => tag.getBoundingClientRect().top < bottom);
      return shown.map((tag) => ({ tag: tag.textContent, isWhole: tag.getBoundingClientRect().right <= right + 0.5 }));
    });
  expect(inSight.length).toBeGreaterThan(0);
  expect(inSight.length).toBeLessThan(tags.length);
  expect(inSight.every(({ isWhole }) => isWhole)).toBe(true);
});

test('a long table builds few rows, and every row is a few keys away', async ({ page, account, site }) => {
  test.slow();
  await add(site, account, 150);
  await enter(page, account);
  const rows = grid(page).getByRole('row');
  await expect(grid(page)).toHaveAttribute('aria-rowcount', '151');
  expect(await rows.count()).toBeLessThan(70);

  await rows.filter({ hasText: 'rack-000' }).getByRole('link').first().focus();
  await page.keyboard.press('ArrowDown');
  await expect(page.getByRole('link', { name: 'rack-001' })).toBeFocused();
  await page.keyboard.press('End');
  await expect(page.getByRole('link', { name: 'rack-149' })).toBeFocused();
  await expect(page.getByRole('link', { name: 'rack-149' })).toBeInViewport();
  await expect(rows.filter({ hasText: 'rack-149' })).toHaveAttribute('aria-rowindex', '151');
  expect(await rows.count()).toBeLessThan(70);
  // The head stays where it can be read.
  await expect(page.getByRole('columnheader', { name: t.fleet.name() })).toBeInViewport({ ratio: 1 });
  await page.keyboard.press('PageUp');
  await expect(page.getByRole('link', { name: 'rack-134' })).toBeFocused();
  await page.keyboard.press('Home');
  await expect(page.getByRole('link', { name: 'rack-000' })).toBeFocused();
  // Tab stops at one of the rows, which is now the last: from the head it passes all that stand before.
  await page.keyboard.press('End');
  await expect(page.getByRole('link', { name: 'rack-149' })).toBeFocused();
  const head = page.getByRole('columnheader', { name: t.fleet.name() }).getByRole('button');
  await head.focus();
  await expect(head).toBeFocused();
  await page.keyboard.press('Tab');
  await expect(page.getByRole('link', { name: 'rack-149' })).toBeFocused();
});

test('groups say what is wrong in them, and fold', async ({ page, account, site }) => {
  const gone = await site.server(account, 'db-1', ['db']);
  const agent = await site.agent(account, gone);
  await site.agent(account, await site.server(account, 'web-1', ['web']));
  await agent.end();
  await enter(page, account, '/?group=tag');

  const head = (tag: string) => page.getByRole('heading', { level: 2 }).getByRole('button', { name: tag });
  await expect(head('web')).toContainText(t.fleet.serverCount({ count: 1 }));
  await expect(head('web')).toContainText(t.fleet.allGood());
  await expect(head('db')).toContainText(t.fleet.countOffline({ count: 1 }));
  await expect(page.getByRole('heading', { name: 'db-1', level: 3 })).toBeVisible();

  await head('db').click();
  await expect(head('db')).toHaveAttribute('aria-expanded', 'false');
  await expect(page.getByRole('heading', { name: 'db-1' })).toBeHidden();
  await expect(page.getByRole('heading', { name: 'web-1' })).toBeVisible();
  await page.reload();
  await expect(head('db')).toHaveAttribute('aria-expanded', 'false');
  await head('db').click();
  await expect(page.getByRole('heading', { name: 'db-1' })).toBeVisible();
});

test('totals and the last day of each server stand on the page', async ({ page, account, site }) => {
  await site.agent(account, await site.server(account, 'one'));
  await site.agent(account, await site.server(account, 'two'));
  await site.server(account, 'unborn');
  await enter(page, account);

  const pulse = page.getByRole('region', { name: t.pulse.title() });
  await expect(pulse).toContainText(t.pulse.onlineOf({ online: 2, total: 3 }));
  await expect(pulse).toContainText(/CPU\s*\d+ %/);
  await expect(pulse).toContainText(/↓.*\d.*B\/s/);
  // Of the network less than a minute is known, for now: it would be a block that grows.
  await expect(pulse.getByRole('img', { name: t.pulse.networkCourse() })).toHaveCount(0);
  await expect(pulse.getByRole('img', { name: t.pulse.memoryHour() })).toBeVisible();
  // The percentage comes together with the bytes that it is of.
  await expect(pulse).toContainText(/\d %\s*[\d.]+ [KMG]iB of/);
  const bar = page
    .getByRole('article')
    .filter({ hasText: 'one' })
    .getByRole('img', { name: t.like(t.beats.always({ share: '{}' })) });
  await expect(bar).toBeVisible();
});

test('what is known stays when the page is left while the service is away, and one note says why', async ({
  page,
  alone,
  faults,
}) => {
  test.slow();
  const account = await alone.account();
  await alone.agent(account, await alone.server(account, 'steady'));
  await enter(page, account, `${alone.origin}/`);
  const card = page.getByRole('article').filter({ hasText: 'steady' });
  const course = card.getByRole('img', { name: t.fleet.cpuLastHour({ name: 'steady' }) }).locator('.line');
  await expect(course).toHaveAttribute('d', /M/);
  await expect.poll(() => greens(page)).not.toEqual([]);
  await navigation(page).getByRole('link', { name: t.app.alerts() }).click();
  await expect(page.getByRole('heading', { name: t.app.alerts(), level: 1 })).toBeVisible();

  await alone.stopService('SIGKILL');
  const lost = page.getByText(t.like(t.app.lost({ duration: '{}' })));
  await expect(lost).toBeVisible();
  await navigation(page).getByRole('link', { name: t.app.fleet(), exact: true }).click();

  await expect(card).toHaveClass(/stale/);
  await expect(course).toHaveAttribute('d', /M/);
  await expect(lost).toBeVisible();
  await expect(page.getByRole('alert').filter({ hasText: /\S/ })).toHaveCount(0);
  await expectNothingGreen(page);

  await alone.startService();
  await expect(lost).toBeHidden(BACK);
  forgive(faults, UNREACHED);
});

test('a server that has not come back to a service that has just started is not called offline', async ({
  page,
  alone,
  faults,
}) => {
  test.slow();
  const account = await alone.account();
  const agent = await alone.agent(account, await alone.server(account, 'late'));
  await enter(page, account, `${alone.origin}/`);
  const card = page.getByRole('article').filter({ hasText: 'late' });
  await expect(card.getByText(t.status.online())).toBeVisible();

  await alone.stopService('SIGKILL');
  await agent.end();
  await alone.startService();

  await page.reload();
  await expect(card.getByText(t.status.returning())).toBeVisible();
  await expect(card.getByText(t.status.offline(), { exact: true })).toBeHidden();
  await expect(page.getByRole('group', { name: t.fleet.status() })).toContainText(t.status.countedReturning());
  await page.goto(`${alone.origin}/wall`);
  const tile = page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: 'late' }) });
  await expect(tile).toContainText(t.wall.returning());
  // Who does not come back within a minute is offline.
  await expect(tile).toContainText(t.wall.offline(), BACK);
  forgive(faults, UNREACHED);
});

test('the fleet is in order for who hears it, and its servers are a few tabs away', async ({ page, account, site }) => {
  await add(site, account, 3, ['a', 'b', 'c', 'd']);
  await enter(page, account);
  for (const path of ['/', '/?group=tag', '/?view=table', '/?view=table&group=tag']) {
    await page.goto(path);
    await expect(page.getByRole('link', { name: 'rack-000' }).first()).toBeVisible();
    const rules = ['heading-order', 'landmark-unique', 'aria-required-children', 'aria-required-parent'];
    await expectAccessible(page, ...rules);
  }

  await page.goto('/');
  await expect(page.getByRole('link', { name: 'rack-000' })).toBeVisible();
  await page.getByRole('link', { name: t.app.skip() }).focus();
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  await expect(page.getByRole('link', { name: t.fleet.skip() })).toBeFocused();
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  await expect(page.getByRole('link', { name: 'rack-000' })).toBeFocused();

  // Tags are one stop, in which arrows move.
  const tags = page.getByRole('group', { name: t.fleet.tags() });
  await tags.getByRole('button', { name: 'a' }).focus();
  await page.keyboard.press('ArrowRight');
  await expect(tags.getByRole('button', { name: 'b' })).toBeFocused();
  await page.keyboard.press('End');
  await expect(tags.getByRole('button', { name: 'd' })).toBeFocused();
  await page.keyboard.press('Tab');
  await expect(page.getByRole('link', { name: 'rack-000' })).toBeFocused();
});
