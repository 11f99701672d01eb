import type { Page } from '@playwright/test';
import { expect, test } from './support/test.ts';
import * as t from './support/texts.ts';

/** An agent with two fans, which lives in a page of its own: the real one measures what this machine has. */
async function startFans(page: Page, key: string): Promise<void> {
  await page.goto('/healthz');
  await page.evaluate(async (key) => {
    const socket = new WebSocket(`${location.origin.replace(/^http/, 'ws')}/api/v1/agents/ws`);
    await new Promise((opened, failed) => {
      socket.onopen = opened;
      socket.onerror = failed;
    });
    const send = (type: string, data: unknown) => socket.send(JSON.stringify({ type, data }));
    const agent = { version: '1.0.0', hostname: 'fans', os: 'Debian', kernel: '6.1', arch: 'x86_64', cpu_count: 2 };
    const auth = { api_key: key, protocol: 1, sample_interval_seconds: 1 };
    send('auth', { ...auth, agent: { ...agent, boot_id: 'b', machine_id: '', capabilities: ['metrics'] } });
    await new Promise((answered) => (socket.onmessage = answered));
    const fan = { name: 'fan_speed', unit: 'rpm', kind: 'gauge', help: 'How fast a fan turns.' };
    const load = { id: 3, name: 'queue_length', unit: 'count', kind: 'gauge', help: 'Mails that wait.' };
    send('series', { series: [{ ...fan, id: 1, target: 'cpu' }, { ...fan, id: 2, target: 'case' }, load] });
    let seq = 0;
    const tell = () => {
      seq += 1;
      const used = { cpu_percent: 5, memory_percent: 10, memory_total: 1e9, memory_used: 1e8 };
      const values = [
        [1, 1_180],
        [2, 620],
        [3, seq],
      ];
      const sample = { timestamp: new Date().toISOString(), ...used, disk_usage: [], network: [], values };
      send('metrics', { seq, samples: [sample] });
    };
    tell();
    setInterval(tell, 1_000);
  }, key);
}

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
  await expect(page.getByText('fan_speed of case is 620 rpm on fans, under 800 rpm')).toBeVisible();
});
