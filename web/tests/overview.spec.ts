// What stands on a server's page besides its charts, and the ways from one server to another.
import { expectAccessible } from './support/accessible.ts';
import { enter, expect, test } from './support/test.ts';
import * as t from './support/texts.ts';

test('processes and events stay in sight beside the charts, and below them on a narrow window', async ({
  page,
  control,
}) => {
  await page.setViewportSize({ width: 1280, height: 800 });
  await enter(page, control.account, `/servers/${control.server.id}`);
  const chart = page.getByRole('figure').first();
  const events = page.getByRole('region', { name: t.overview.events(), exact: true });
  await expect(chart.locator('canvas')).toBeVisible();
  const [first, beside] = [await chart.boundingBox(), await events.boundingBox()];
  if (!first || !beside) throw new Error('the chart or the events have no place');
  expect(beside.x).toBeGreaterThan(first.x + first.width);

  await expectAccessible(page);

  await page.getByRole('figure').last().scrollIntoViewIfNeeded();
  await page.mouse.wheel(0, 1_000);
  await expect(page.getByRole('region', { name: t.overview.topProcesses() })).toBeInViewport();

  await page.setViewportSize({ width: 1100, height: 800 });
  const last = page.getByRole('figure').last();
  await expect
    .poll(async () => ((await events.boundingBox())?.y ?? NaN) - ((await last.boundingBox())?.y ?? NaN))
    .toBeGreaterThan(0);
});

test('the time of the processes stands in one line beside the charts', async ({ page, control }) => {
  await page.setViewportSize({ width: 1280, height: 800 });
  await enter(page, control.account, `/servers/${control.server.id}`);
  const told = page
    .getByRole('region', { name: t.overview.topProcesses() })
    .getByText(t.like(t.overview.takenAt({ when: '{}', time: '{}' })));
  await expect(told).toBeVisible();

  const lines = await told.evaluate((element) => {
    const { height } = element.getBoundingClientRect();
    return height / parseFloat(getComputedStyle(element).lineHeight);
  });

  expect(lines).toBeLessThan(1.5);
});

test('peaks can be drawn in the place of means, as the address says', async ({ page, control }) => {
  await enter(page, control.account, `/servers/${control.server.id}`);
  await expect(page.locator('figure canvas').first()).toBeVisible();

  await page.getByRole('checkbox', { name: t.overview.peaks() }).check();
  await expect(page).toHaveURL(/peaks=1/);
  await page.reload();

  await expect(page.getByRole('checkbox', { name: t.overview.peaks() })).toBeChecked();
  await expect(page.locator('figure canvas').first()).toBeVisible();
});

test('brackets go to the next server and the one before, and stay on the tab', async ({
  signedIn: page,
  account,
  site,
}) => {
  const ids: string[] = [];
  for (const name of ['alpha', 'beta', 'gamma']) ids.push((await site.server(account, name)).id);
  await page.goto(`/servers/${ids[0]}/settings`);
  await expect(page.getByRole('heading', { name: 'alpha', level: 1 })).toBeVisible();

  await page.keyboard.press(']');
  await expect(page.getByRole('heading', { name: 'beta', level: 1 })).toBeVisible();
  await expect(page).toHaveURL(`/servers/${ids[1]}/settings`);
  await page.getByRole('button', { name: t.server.previousServer() }).click();
  await expect(page.getByRole('heading', { name: 'alpha', level: 1 })).toBeVisible();
  await page.keyboard.press('[');
  await expect(page.getByRole('heading', { name: 'gamma', level: 1 })).toBeVisible();
});

test('nothing moves where less motion is wanted', async ({ page, control }) => {
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await enter(page, control.account, `/servers/${control.server.id}`);
  await expect(page.locator('figure canvas').first()).toBeVisible();

  const longest = await page.evaluate(() =>
    Math.max(
      0,
      ...[...document.querySelectorAll('body, body *')].flatMap((element) => {
        const { animationDuration, animationIterationCount, transitionDuration } = getComputedStyle(element);
        const seconds = (text: string) =>
          text.split(',').map((part) => parseFloat(part) * (part.includes('ms') ? 0.001 : 1));
        const turns = animationIterationCount.includes('infinite') ? Infinity : 1;
        return [...seconds(animationDuration).map((each) => each && each * turns), ...seconds(transitionDuration)];
      }),
    ),
  );

  expect(longest).toBeLessThan(0.001);
});
