// What stands over a page is as accessible as the page.
import type { Page } from '@playwright/test';
import { enter, expect, expectAccessible, test, type Control } from './support/test.ts';
import * as t from './support/texts.ts';

interface Dialog {
  name: string;
  path: string;
  open: (page: Page, control: Control) => Promise<void>;
}

const press = (name: string) => (page: Page) => page.getByRole('main').getByRole('button', { name }).first().click();

const dialogs: Dialog[] = [
  { name: 'a new key', path: '/servers/SERVER/keys', open: press(t.keys.create()) },
  { name: 'a revocation', path: '/servers/SERVER/keys', open: press(t.keys.revokeTitle({ name: '' }).trim()) },
  { name: 'a deletion', path: '/servers/SERVER/settings', open: press(t.settings.deleteServer()) },
  { name: 'a time of the charts', path: '/servers/SERVER', open: press(t.overview.custom()) },
  { name: 'a new threshold', path: '/alerts?view=thresholds', open: press(t.serverAlerts.addRule()) },
  { name: 'a new silence', path: '/account/silences', open: press(t.silences.add()) },
  { name: 'a new channel', path: '/account/notifications', open: press(t.channels.add()) },
  { name: 'the keys', path: '/account', open: (page) => page.locator('body').press('?') },
];

for (const { name, path, open } of dialogs) {
  test(`the dialog of ${name} is accessible in light and dark`, async ({ page, control }) => {
    await enter(page, control.account, path.replace('SERVER', control.server.id));
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
    await open(page, control);
    const dialog = page.getByRole('dialog');
    await expect(dialog).toBeVisible();

    await page.emulateMedia({ colorScheme: 'light' });
    await expectAccessible(page);
    await page.emulateMedia({ colorScheme: 'dark' });
    await expectAccessible(page, 'color-contrast');

    await page.keyboard.press('Escape');
    await expect(dialog).toBeHidden();
  });
}
