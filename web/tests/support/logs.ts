import type { Locator, Page } from '@playwright/test';
import * as t from './texts.ts';

/** The button that says which log is shown, and opens the list of others. */
export function logButton(page: Page): Locator {
  return page.getByRole('button', { name: t.logs.logIs({ name: '' }) });
}

/** Chooses a log of a server by its name. */
export async function chooseLog(page: Page, name: string): Promise<void> {
  await logButton(page).click();
  await page.getByRole('combobox', { name: t.logs.findLog() }).fill(name);
  await page.getByRole('option', { name }).first().click();
}
