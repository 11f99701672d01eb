import type { Page } from '@playwright/test';
import { hold } from './support/answer.ts';
import type { Account, Site } from './support/site.ts';
import { expect, test } from './support/test.ts';
import * as t from './support/texts.ts';

/** Saves a view with a line for all servers together. */
async function savedView(site: Site, account: Account, name: string): Promise<string> {
  const definition = { version: 1, series: ['memory_used'], by: 'none', range: '15m' };
  return (await site.call<{ id: string }>('POST', '/views', account.token, { name, definition })).id;
}

const VIEWS = /\/api\/v1\/views[/?]/;

const grouping = (page: Page) => page.getByLabel(t.explore.groupBy());
const saveButton = (page: Page) => page.getByRole('button', { name: t.explore.saveView() });
const heading = (page: Page, name: string) => page.getByRole('heading', { name, level: 1 });

test('a view that was opened is neither changed nor saved before it is there', async ({
  signedIn: page,
  account,
  site,
}) => {
  const id = await savedView(site, account, 'Memory');
  const release = await hold(page, VIEWS);

  await page.goto(`/explore?view=${id}&s=cpu_percent`);
  await expect(saveButton(page)).toBeDisabled();
  await page.goto(`/explore?view=${id}`);
  await expect(heading(page, t.explore.title())).toBeVisible();
  await expect(grouping(page)).toHaveCount(0);
  await expect(page.getByRole('button', { name: t.explore.addSeries() })).toHaveCount(0);
  release();

  await expect(heading(page, 'Memory')).toBeVisible();
  await expect(grouping(page)).toHaveValue('none');
  await expect(saveButton(page)).toBeEnabled();
});

test('what was saved is shown before the view is read again', async ({ signedIn: page, account, site }) => {
  const id = await savedView(site, account, 'Memory');
  await page.goto(`/explore?view=${id}`);
  await expect(grouping(page)).toHaveValue('none');
  const release = await hold(page, VIEWS);
  const dialog = page.getByRole('dialog');
  const save = dialog.getByRole('button', { name: t.explore.save(), exact: true });

  await grouping(page).selectOption('tag');
  await saveButton(page).click();
  await save.click();
  await expect(page).toHaveURL(/\/explore\?view=[0-9a-f-]{36}$/);
  await expect(grouping(page)).toHaveValue('tag');
  await expect(page.getByText(t.explore.changed(), { exact: true })).toHaveCount(0);

  await grouping(page).selectOption('series');
  await saveButton(page).click();
  await dialog.getByLabel(t.explore.saveAsNew()).check();
  await dialog.getByLabel(t.explore.viewName(), { exact: true }).fill('Memory, too');
  await save.click();
  await expect(heading(page, 'Memory, too')).toBeVisible();
  await expect(grouping(page)).toHaveValue('series');

  release();
  await page.goto(`/explore?view=${id}`);
  await expect(heading(page, 'Memory')).toBeVisible();
  await expect(grouping(page)).toHaveValue('tag');
});
