// Every page, in light and dark colours, on a wide screen and on a phone. That no page asks anybody but the service, and
// breaks no rule of its policy, is watched in every test: see `faults`.
import type { Page } from '@playwright/test';
import { open, show, signedIn } from './support/pages.ts';
import { expect, expectAccessible, expectFits, test } from './support/test.ts';

async function look(page: Page): Promise<void> {
  await page.emulateMedia({ colorScheme: 'light' });
  await expectAccessible(page);
  await page.emulateMedia({ colorScheme: 'dark' });
  await expectAccessible(page);
  await page.setViewportSize({ width: 390, height: 844 });
  await expectFits(page);
  await expectAccessible(page);
}

for (const shown of signedIn) {
  test(`${shown.path} is accessible in light and dark, and fits a phone`, async ({ page, site, crowd }) => {
    await show(page, shown, site, crowd);

    await look(page);

    await expect(shown.ready(page, crowd.server.name).first()).toBeVisible();
  });
}

for (const { path, ready } of open) {
  test(`${path} is accessible in light and dark, and fits a phone`, async ({ page, account }) => {
    // With an account, so that the service does not begin with making the first one.
    expect(account.token).not.toBe('');
    await page.goto(path);
    await expect(ready(page, '').first()).toBeVisible();

    await look(page);
  });
}
