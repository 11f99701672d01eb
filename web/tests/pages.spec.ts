// Every page, in light and dark colours, on a wide screen and on a phone. That no page asks anybody but the service, and
// breaks no rule of its policy, is watched in every test: see `faults`.
import type { Page } from '@playwright/test';
import { address, signedIn } from './support/pages.ts';
import { enter, expect, expectAccessible, expectFits, test } from './support/test.ts';
import * as t from './support/texts.ts';

async function look(page: Page): Promise<void> {
  await page.emulateMedia({ colorScheme: 'light' });
  await expectAccessible(page);
  await page.emulateMedia({ colorScheme: 'dark' });
  await expectAccessible(page, 'color-contrast');
  await page.setViewportSize({ width: 390, height: 844 });
  await expectFits(page);
}

for (const { path, ready } of signedIn) {
  test(`${path} is accessible in light and dark, and fits a phone`, async ({ page, site, control }) => {
    await enter(page, control.account, await address(path, site, control));
    await expect(ready(page)).toBeVisible();

    await look(page);

    await expect(ready(page)).toBeVisible();
  });
}

for (const path of ['/sign-in', '/register']) {
  test(`${path} is accessible in light and dark, and fits a phone`, async ({ page, account }) => {
    // With an account, so that the service does not begin with making the first one.
    expect(account.token).not.toBe('');
    await page.goto(path);
    await expect(page.getByLabel(t.security.title(), { exact: true })).toBeVisible();

    await look(page);
  });
}
