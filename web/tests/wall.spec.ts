import { expectNothingGreen, greens } from './support/greens.ts';
import { BACK, enter, expect, forgive, test } from './support/test.ts';
import * as t from './support/texts.ts';

test('the wall shows every server, what is wrong, and stays current', async ({ signedIn: page, account, site }) => {
  const up = await site.server(account, 'tower');
  const agent = await site.agent(account, up);
  await site.server(account, 'unborn');

  await page.goto('/');
  await page.getByRole('link', { name: t.fleet.wall() }).click();

  const tower = page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: 'tower' }) });
  await expect(tower).toContainText(t.wall.online());
  await expect(tower).toContainText(/\d\s?%/);
  await expect(page.getByRole('heading', { name: 'unborn' })).toBeVisible();
  await expect(page.getByText(t.wall.noAlerts())).toBeVisible();
  // Read-only: there is nothing to press but the way back.
  await expect(page.getByRole('button')).toHaveCount(0);

  await site.call('POST', '/alerts/thresholds', account.token, {
    server_id: up.id,
    metric_type: 'memory',
    comparison: 'gt',
    threshold_value: 0.01,
    severity: 'critical',
    enabled: true,
  });
  await expect(page.getByRole('region', { name: t.wall.openAlerts() })).toContainText(
    t.plain(t.wall.alertCount({ count: 1 })),
  );
  await expect(tower).toContainText(t.wall.critical());
  await agent.end();
  await expect(tower).toContainText(t.wall.offline());
  await expect(page.getByRole('region', { name: t.wall.troubles() })).toContainText('tower');
  // A server that is added now is there.
  await site.server(account, 'newcomer');
  await expect(page.getByRole('heading', { name: 'newcomer' })).toBeVisible();

  await page.keyboard.press('Escape');
  await expect(page.getByRole('heading', { name: t.fleet.title() })).toBeVisible();
});

test('every server has its place on the wall, however many there are', async ({ signedIn: page, account, site }) => {
  const names = Array.from({ length: 40 }, (_, index) => `rack-${String(index).padStart(2, '0')}`);
  for (const name of names)
    await site.call('POST', '/servers', account.token, { name, host: 'rack.example.com', tags: [] });

  await page.goto('/wall');

  for (const size of [
    { width: 1920, height: 1080 },
    { width: 390, height: 844 },
  ]) {
    await page.setViewportSize(size);
    await expect(page.getByRole('heading', { name: /^rack-/ })).toHaveCount(40);
    await expect(page.getByRole('heading', { name: 'rack-39' })).toBeInViewport();
    await expect(page.getByRole('heading', { name: 'rack-00' })).toBeInViewport();
  }
});

test('more servers than have room for a name are a square each, with those in trouble beside', async ({
  signedIn: page,
  account,
  site,
}) => {
  const create = (name: string) => site.server(account, name);
  for (let index = 0; index < 250; index += 1)
    await site.call('POST', '/servers', account.token, { name: `cell-${index}`, host: 'rack.example.com', tags: [] });
  await (await site.agent(account, await create('gone'))).end();
  await page.setViewportSize({ width: 390, height: 560 });

  await page.goto('/wall');

  const picture = page.getByRole('img', { name: t.wall.dots({ count: 251 }) });
  await expect(picture).toBeVisible();
  const colours = () =>
    picture.locator('canvas').evaluate((canvas: HTMLCanvasElement) => {
      const { data } = canvas.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height) ?? { data: [] };
      const found = new Set<string>();
      for (let at = 0; at < data.length; at += 4)
        if (data[at + 3] === 255) found.add([data[at], data[at + 1], data[at + 2]].join());
      return found.size;
    });
  // The one that is gone, and those that never were there.
  await expect.poll(colours).toBe(2);
  await picture.hover({ position: { x: 5, y: 5 } });
  await expect(page.getByText(t.wall.dot({ name: 'cell-0', state: t.wall.pending(), cpu: '–' }))).toBeVisible();

  await page.setViewportSize({ width: 1920, height: 1080 });
  await expect(page.getByRole('heading', { name: /^cell-/ })).toHaveCount(250);
  await expect(page.getByRole('region', { name: t.wall.troubles() })).toContainText('gone');
});

test('names that begin alike can be told apart on small tiles', async ({ signedIn: page, account, site }) => {
  for (let index = 0; index < 60; index += 1) {
    const name = `simulated-in-a-rack-${String(index).padStart(3, '0')}`;
    await site.call('POST', '/servers', account.token, { name, host: 'rack.example.com', tags: [] });
  }

  await page.goto('/wall');

  const headings = page.getByRole('heading', { name: /^simulated-in-a-rack-/ });
  await expect(headings).toHaveCount(60);
  const shown = () =>
    headings.evaluateAll((all) => {
      const textOf = (heading: Element) => heading.textContent.trim();
      const isCut = (heading: Element) => {
        const head = heading.querySelector('span');
        return head === null || head.scrollWidth > head.clientWidth;
      };
      return { different: new Set(all.map(textOf)).size, cut: all.filter(isCut).map(textOf) };
    });
  await expect.poll(shown).toEqual({ different: 60, cut: [] });
  await expect(headings.first()).toHaveAttribute('title', 'simulated-in-a-rack-000');
});

test('a wall that has lost the service says so and how old it is, and nothing on it is green', async ({
  page,
  alone,
  faults,
}) => {
  test.slow();
  const account = await alone.account();
  await alone.agent(account, await alone.server(account, 'tower'));
  await alone.server(account, 'unborn');
  await enter(page, account, `${alone.origin}/wall`);
  const tower = page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: 'tower' }) });
  await expect(tower).toContainText(t.wall.online());
  await expect(tower).toContainText(/\d\s?%/);
  await expect.poll(() => greens(page)).not.toEqual([]);

  await alone.stopService('SIGKILL');

  const said = page.getByRole('alert');
  await expect(said).toContainText(t.like(t.wall.lost({ duration: '{}' })));
  await expect(said).toContainText(t.like(t.wall.lostAsOf({ time: '{}' })));
  await expect(tower).toContainText(t.like(t.wall.asOf({ ago: '{}' })));
  await expect(tower).not.toContainText(t.wall.online());
  await expectNothingGreen(page);
  // It continues to age.
  const age = await tower.innerText();
  await expect.poll(() => tower.innerText()).not.toBe(age);
  await expectNothingGreen(page);

  await alone.startService();

  await expect(said).toBeEmpty(BACK);
  await expect(tower).toContainText(t.wall.online(), BACK);
  await expect.poll(() => greens(page)).not.toEqual([]);
  forgive(faults, /^WebSocket connection to .* failed/);
});
