// The charts of a server's page.
import type { Page } from '@playwright/test';
import { expect } from './test.ts';
import * as t from './texts.ts';

export const chart = (page: Page, title: string) =>
  page.getByRole('figure').filter({ has: page.getByRole('heading', { name: title, exact: true }) });

export const slider = (page: Page, title = t.overview.cpu()) => chart(page, title).getByRole('slider');

/** The charts are there, and the numbers above them, so that they stay where they are. */
export async function settled(page: Page): Promise<void> {
  await expect(chart(page, t.overview.cpu()).locator('canvas')).toBeVisible();
  await expect(page.getByRole('list', { name: t.overview.now() })).toContainText(/\d %/);
}
