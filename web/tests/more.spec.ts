import { startFans } from './support/fans.ts';
import { expect, test } from './support/test.ts';
import * as t from './support/texts.ts';

test('what else an agent measures is found, drawn by its targets and watched', async ({
  signedIn: page,
  account,
  site,
}) => {
  const server = await site.server(account, 'fans');
  await startFans(await page.context().newPage(), server.key);
  await page.bringToFront();
  await page.goto(`/servers/${server.id}`);
  const more = page.getByRole('region', { name: t.overview.more() });
  for (const name of ['fan_speed', 'queue_length']) await expect(more.getByRole('checkbox', { name })).toBeVisible();

  await more.getByRole('searchbox', { name: t.overview.searchSeries() }).fill('turns case');
  await expect(more.getByRole('checkbox')).toHaveCount(1);
  await more.getByRole('checkbox', { name: 'fan_speed' }).check();

  await expect(page).toHaveURL(/more=fan_speed/);
  const chart = more.getByRole('figure').filter({ has: page.getByRole('heading', { name: 'fan_speed', exact: true }) });
  await expect(chart.locator('canvas')).toBeVisible();
  await expect(chart).toContainText('1,180 rpm');
  await expect(chart).toContainText('620 rpm');
  await page.reload();
  await expect(chart.locator('canvas')).toBeVisible();
  await chart.getByRole('button', { name: t.overview.hide() }).click();
  await expect(chart).toHaveCount(0);

  await page.goto('/alerts?view=thresholds');
  await page.getByRole('button', { name: t.alerts.addRule() }).first().click();
  const form = page.getByRole('dialog', { name: t.alerts.addRule() });
  await form.getByLabel(t.thresholds.metric()).selectOption({ label: t.alertWords.openSeries() });
  await form.getByLabel(t.thresholds.series()).fill('fan_speed');
  await form.getByLabel(t.thresholds.condition()).selectOption({ label: t.alertWords.under() });
  await form.getByLabel(t.like(t.thresholds.value({ unit: '{}' }))).fill('800');
  await form.getByLabel(t.thresholds.holds()).fill('0');
  await form.getByRole('button', { name: t.alerts.save() }).click();
  await expect(form).toBeHidden();
  await expect(page.getByRole('row').filter({ hasText: 'fan_speed < 800' })).toBeVisible();

  await page.goto('/alerts');
  await expect(page.getByText('fan_speed of case below 800 rpm (lowest 620 rpm)')).toBeVisible();
});
