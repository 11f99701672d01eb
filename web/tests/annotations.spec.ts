import { expectAccessible } from './support/accessible.ts';
import { enter, expect, test } from './support/test.ts';
import * as t from './support/texts.ts';

test('a deploy is written on the page of a server, marked on its charts, and deleted', async ({ page, control }) => {
  await enter(page, control.account, `/servers/${control.server.id}`);
  const events = page.getByRole('region', { name: t.overview.events(), exact: true });
  // They stand above, and long names take two lines.
  await expect(page.getByRole('region', { name: t.overview.topProcesses() }).getByRole('table')).toBeVisible();
  await events.getByRole('button', { name: t.annotations.add() }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel(t.annotations.kind()).selectOption('deploy');
  await dialog.getByLabel(t.annotations.text(), { exact: true }).fill('Shop');
  await dialog.getByLabel(t.annotations.version()).fill('2.14.0');
  await dialog.getByLabel(t.annotations.url()).fill('javascript:alert(1)');
  await expectAccessible(page);
  await dialog.getByRole('button', { name: t.annotations.save(), exact: true }).click();
  await expect(dialog.getByText(/http or https address/)).toBeVisible();
  await dialog.getByLabel(t.annotations.url()).fill('https://git.example.com/shop/pipelines/4711');
  await dialog.getByRole('button', { name: t.annotations.save(), exact: true }).click();

  const title = t.overview.deployedVersion({ what: 'Shop', version: '2.14.0' });
  const link = events.getByRole('link', { name: title });
  await expect(link).toHaveAttribute('href', 'https://git.example.com/shop/pipelines/4711');
  await expect(events.getByText(t.annotations.by({ user: control.account.username }))).toBeVisible();

  await events.getByRole('button', { name: t.annotations.remove({ title }) }).click();
  await page.getByRole('dialog').getByRole('button', { name: t.annotations.removeIt(), exact: true }).click();
  await expect(link).toBeHidden();
});
