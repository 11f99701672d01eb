// Fields of times follow the clock and the zone that somebody chose, whatever the browser's own are.
import type { Page } from '@playwright/test';
import { expectAccessible } from './support/accessible.ts';
import { enter, expect, test } from './support/test.ts';
import * as t from './support/texts.ts';

test.use({ locale: 'en-US', timezoneId: 'America/New_York' });

async function prefer(page: Page, clock: string, zone: string): Promise<void> {
  await page.addInitScript(
    ([chosenClock, chosenZone]) => {
      // Firefox runs it on its empty page too, which has no storage.
      if (!location.origin.startsWith('http')) return;
      localStorage.setItem('clock', chosenClock ?? '');
      localStorage.setItem('zone', chosenZone ?? '');
    },
    [clock, zone],
  );
}

const NIGHT = 'from=2026-11-21T15:00:00Z&to=2026-11-21T16:30:00Z';

async function openRange(page: Page): Promise<void> {
  await page.getByRole('main').getByRole('button', { name: t.overview.custom() }).first().click();
  await expect(page.getByRole('dialog')).toBeVisible();
}

const from = (page: Page) => page.getByRole('dialog').getByRole('textbox', { name: t.overview.from(), exact: true });
const to = (page: Page) => page.getByRole('dialog').getByRole('textbox', { name: t.overview.to(), exact: true });
const show = (page: Page) => page.getByRole('dialog').getByRole('button', { name: t.overview.show(), exact: true });

test('a range is typed by 24 hours in UTC, and what is no time is said', async ({ page, control }) => {
  await prefer(page, '24', 'utc');
  await enter(page, control.account, `/servers/${control.server.id}?${NIGHT}`);
  await openRange(page);
  await expect(from(page)).toHaveValue('2026-11-21 15:00');
  await expect(to(page)).toHaveValue('2026-11-21 16:30');

  await from(page).fill('yesterday');
  await show(page).click();
  await expect(from(page)).toHaveAccessibleDescription(t.ui.timeForm({ example: '2026-11-21 15:00' }));
  await from(page).fill('2026-02-30 03:00');
  await from(page).blur();
  await expect(from(page)).toHaveAccessibleDescription(t.ui.timeMissing({ zone: 'UTC' }));
  await expectAccessible(page);

  await from(page).fill('2026-11-21 03:00');
  await to(page).fill('2026-11-21T04:15:30');
  await show(page).click();
  await expect(page).toHaveURL(/from=2026-11-21T03(:|%3A)00(:|%3A)00Z&to=2026-11-21T04(:|%3A)15(:|%3A)30Z/);
});

test('the same range by 12 hours on the clock of the computer, changed by arrows', async ({ page, control }) => {
  await prefer(page, '12', 'local');
  await enter(page, control.account, `/servers/${control.server.id}?${NIGHT}`);
  await openRange(page);
  await expect(from(page)).toHaveValue('2026-11-21 10:00 AM');

  await from(page).focus();
  await from(page).evaluate((field: HTMLInputElement) => field.setSelectionRange(12, 12));
  await from(page).press('ArrowDown');
  await expect(from(page)).toHaveValue('2026-11-21 09:00 AM');
  await from(page).evaluate((field: HTMLInputElement) => field.setSelectionRange(9, 9));
  await from(page).press('ArrowDown');
  await expect(from(page)).toHaveValue('2026-11-20 09:00 AM');
  await show(page).click();

  await expect(page).toHaveURL(/from=2026-11-20T14(:|%3A)00(:|%3A)00Z/);
});

test('an hour that summer time skips is no time', async ({ page, control }) => {
  await prefer(page, '24', 'local');
  await enter(page, control.account, `/servers/${control.server.id}?${NIGHT}`);
  await openRange(page);

  await from(page).fill('2026-03-08 02:30');
  await from(page).blur();

  await expect(from(page)).toHaveAccessibleDescription(t.ui.timeMissing({ zone: 'America/New York' }));
});

test('a silence is not saved while a time of it is none', async ({ page, account, site }) => {
  await prefer(page, '24', 'utc');
  await enter(page, account, '/account/silences');
  await page.getByRole('main').getByRole('button', { name: t.silences.add() }).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel(t.silences.lasts()).selectOption('until');
  const end = dialog.getByRole('textbox', { name: t.silences.end(), exact: true });
  await expect(end).toHaveValue(/^\d{4}-\d{2}-\d{2} \d{2}:\d{2}$/);
  await end.fill('in a week');
  await dialog.getByRole('button', { name: t.silences.add() }).click();
  await expect(end).toBeFocused();
  await expect(end).toHaveAttribute('aria-invalid', 'true');

  const day = new Date(Date.now() + 2 * 86_400_000).toISOString().slice(0, 10);
  await end.fill(`${day} 15:00`);
  await dialog.getByRole('button', { name: t.silences.add() }).click();

  await expect(dialog).toBeHidden();
  const [silence] = await site.call<{ ends_at: string }[]>('GET', '/alerts/silences', account.token);
  expect(silence?.ends_at).toMatch(new RegExp(`^${day}T15:00`));
});

test('no page has a field of times that the browser writes by its own clock', async ({ page, control }) => {
  await enter(page, control.account, '/account/audit?range=own&since=2026-11-21T15:00');
  await expect(page.getByRole('textbox', { name: t.audit.from() })).toBeVisible();

  await expect(page.locator('input[type="datetime-local"], input[type="time"]')).toHaveCount(0);
});
