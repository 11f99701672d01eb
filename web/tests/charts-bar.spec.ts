// The bar above the charts of a server: a pinned time, and the range beside it.
import type { Page } from '@playwright/test';
import { settled, slider } from './support/charts.ts';
import { enter, expect, test } from './support/test.ts';
import * as t from './support/texts.ts';

/** The navigation becomes narrow only when the page has noticed a new width. */
async function widthNoticed(page: Page, width: number): Promise<void> {
  await page.waitForFunction((wanted) => innerWidth === wanted, width);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

/** A measure once two looks agree: a page follows a new width in several steps. */
async function steady(measure: () => Promise<number>): Promise<number> {
  let last = NaN;
  const agrees = async () => {
    const before = last;
    last = await measure();
    return last === before;
  };
  await expect.poll(agrees).toBe(true);
  return last;
}

test('a pinned time stands in the address, which shows it again', async ({ page, control }) => {
  await enter(page, control.account, '/account');
  await page.goto(`/servers/${control.server.id}`);
  await expect(slider(page)).toHaveAttribute('aria-valuetext', /\d/);
  await slider(page).focus();
  await page.keyboard.press('End');
  await page.keyboard.press('Enter');
  const pin = page.getByTitle(t.overview.unpin());
  await expect(pin).toHaveText(/\d:\d\d:\d\d/);
  await expect(page).toHaveURL(/at=\d{4}-/);
  const time = await pin.textContent();

  await page.reload();
  await expect(pin).toHaveText(time ?? '');
  await pin.click();
  await expect(page).not.toHaveURL(/at=/);
  await expect(pin).toBeHidden();
  // It is no step of the history.
  await page.goBack();
  await expect(page).toHaveURL('/account');
});

test('a pinned time does not lie over the range', async ({ page, control }) => {
  await page.setViewportSize({ width: 1440, height: 900 });
  await enter(page, control.account, `/servers/${control.server.id}`);
  await expect(slider(page)).toHaveAttribute('aria-valuetext', /\d/);
  await slider(page).focus();
  await page.keyboard.press('End');
  await page.keyboard.press('Enter');
  const pin = page.getByTitle(t.overview.unpin());
  await expect(pin).toBeVisible();
  await page.evaluate(() => {
    const address = new URL(location.href);
    address.searchParams.set('from', '2026-01-05T03:00:00Z');
    address.searchParams.set('to', '2026-01-05T03:20:00Z');
    history.pushState(null, '', address);
    dispatchEvent(new PopStateEvent('popstate'));
  });
  const text = page.locator('p.told');
  await expect(text).toContainText(t.like(t.overview.range({ from: '{}', to: '{}' })));
  // Both at once: the text becomes longer and shorter while the charts are read.
  const areApart = () =>
    pin.evaluate((button) => {
      const [one, other] = [button, document.querySelector('p.told')].map((each) => each?.getBoundingClientRect());
      if (!one || !other || one.width === 0 || other.width === 0) return false;
      return (
        one.left >= other.right - 1 ||
        other.left >= one.right - 1 ||
        one.top >= other.bottom - 1 ||
        other.top >= one.bottom - 1
      );
    });

  for (const width of [1920, 1440, 1280, 1100, 900, 768, 390]) {
    await page.setViewportSize({ width, height: 900 });
    await widthNoticed(page, width);
    await expect.poll(areApart, `${width} px`).toBe(true);
  }
});

test('charts stand still when somebody zooms', async ({ page, control }) => {
  await enter(page, control.account, `/servers/${control.server.id}`);
  await settled(page);
  // Measured from the numbers above the range: both move when a longer uptime takes another line of the page's head.
  const top = () =>
    page.getByRole('list', { name: t.overview.now() }).evaluate((numbers) => {
      const figure = document.querySelector('figure')?.getBoundingClientRect();
      return (figure?.top ?? NaN) - numbers.getBoundingClientRect().bottom;
    });

  for (const width of [1440, 1280, 1024, 768, 390]) {
    await page.setViewportSize({ width, height: 900 });
    await widthNoticed(page, width);
    const before = await steady(top);
    await page.getByRole('button', { name: t.overview.zoomIn() }).click();
    await expect(page.locator('p.told')).toContainText(t.like(t.overview.range({ from: '{}', to: '{}' })));
    await expect.poll(top, `${width} px`).toBe(before);

    await page.getByRole('button', { name: t.overview.back(), exact: true }).click();
    await expect(page.getByRole('button', { name: t.overview.back(), exact: true })).toBeHidden();
    await expect.poll(top, `back at ${width} px`).toBe(before);
  }
});
