import { hold } from './support/answer.ts';
import { expectAccessible } from './support/accessible.ts';
import type { Account, Site } from './support/site.ts';
import { enter, expect, test } from './support/test.ts';
import * as t from './support/texts.ts';

/** The alert of the account, once there is one. */
async function openAlert(site: Site, account: Account): Promise<string> {
  let id = '';
  await site.until(async () => {
    const [alert] = await site.call<{ id: string }[]>('GET', '/alerts', account.token);
    id = alert?.id ?? '';
    return id !== '';
  }, 'the alert is open');
  return id;
}

test('an alert is an incident: its chart, what ran, notes, and what happened before', async ({
  signedIn: page,
  account,
  site,
  visit,
}) => {
  const server = await site.server(account, 'incident');
  await site.agent(account, server);
  const definition = { version: 1, series: ['cpu_percent'] };
  await site.call('POST', '/views', account.token, { name: 'Of no server', definition });
  await site.call('POST', '/alerts/thresholds', account.token, {
    server_id: server.id,
    metric_type: 'memory',
    comparison: 'gt',
    threshold_value: 0.01,
    enabled: true,
  });
  const id = await openAlert(site, account);
  await page.goto(`/alerts/${id}`);

  await expect(page.getByRole('figure').locator('canvas')).toBeVisible();
  await expect(page.getByRole('figure').getByText(t.incident.whileFiring(), { exact: true }).first()).toBeVisible();
  // What else happened stands on the time axis beside the alert.
  await page.getByRole('figure').getByRole('toolbar', { name: t.charts.events() }).getByRole('button').first().focus();
  await expect(page.getByRole('figure').locator('.tip')).toContainText(t.overview.agentConnected());
  await expect(page.getByRole('region', { name: t.moment.processes() })).toBeVisible();
  const events = page.getByRole('region', { name: t.moment.events() });
  await expect(events.getByText(t.overview.agentConnected())).toBeVisible();
  // What has nothing to do with the server stands among what happened anywhere.
  await expect(events).not.toContainText('Of no server');
  await events.getByRole('button', { name: t.moment.wholeFleet() }).click();
  await expect(events).toContainText('Of no server');
  await expect(page.getByText(t.incident.first())).toBeVisible();
  await expect(page.getByRole('link', { name: t.moment.openLogs() })).toHaveAttribute('href', /since=/);
  await expectAccessible(page);

  const other = await visit(account, `/alerts/${id}`);
  await page.getByLabel(t.incident.note(), { exact: true }).fill('The disk is <b>slow</b>.');
  await page.locator('form').getByRole('button', { name: t.incident.addNote() }).click();
  for (const one of [page, other])
    await expect(
      one
        .getByRole('listitem')
        .filter({ hasText: t.alerts.eventBy({ event: t.incident.note(), user: account.username }) }),
    ).toContainText('The disk is <b>slow</b>.');
  await expect(page.getByLabel(t.incident.note(), { exact: true })).toHaveValue('');

  await page.getByRole('button', { name: t.incident.silence() }).click();
  const dialog = page.getByRole('dialog', { name: t.silences.addTitle() });
  await expect(dialog.getByLabel(t.silences.server(), { exact: true })).toHaveValue(server.id);
  await dialog.getByRole('button', { name: t.silences.add() }).click();
  await expect(dialog).toBeHidden();
  const [silence] = await site.call<{ server_id: string }[]>('GET', '/alerts/silences', account.token);
  expect(silence?.server_id).toBe(server.id);
});

test("a container's alert shows its own lines, those of the system, and the containers then", async ({
  signedIn: page,
  account,
  site,
  control,
}) => {
  const server = await site.server(account, 'host');
  const name = site.unique(`ending-${process.pid}`);
  const write = site.keepsSystemLog(server.key);
  await site.call('POST', '/alerts/thresholds', account.token, {
    server_id: server.id,
    metric_type: 'container_state',
    target: name,
    states: ['stopped'],
    comparison: 'gte',
    threshold_value: 3,
  });
  const docker = ['--docker', 'read', '--docker-host', control.docker.host];
  const agent = await site.agent(account, server, '--logs', 'on', ...docker);
  await control.docker.run(name, 'echo the last words', 'exit 3');
  // The page shows two minutes before the alert.
  write('kernel: the disk is slow');
  const id = await openAlert(site, account);

  await page.goto(`/alerts/${id}`);

  const own = page.getByRole('region', { name: t.moment.containerLines({ container: name }), exact: true });
  await expect(own).toContainText('the last words');
  const address = new RegExp(`/logs\\?source=container&container_id=${name}&past=1&since=.*&until=`);
  await expect(own.getByRole('link', { name: t.moment.openLogs() })).toHaveAttribute('href', address);
  const lines = page.getByRole('region', { name: t.moment.lines(), exact: true });
  await expect(lines).toContainText('the disk is slow');
  const first = page.getByRole('region', { name: t.moment.containers() }).getByRole('listitem').first();
  await expect(first).toContainText(name);
  await expect(first).toContainText(t.like(t.moment.endedWith({ time: '{}', code: '3' })));
  await expectAccessible(page);
  // What was read stays when the agent is gone.
  await agent.end();
  for (const log of [own, lines]) await expect(log).toContainText(t.moment.logsAway());
  await expect(own).toContainText('the last words');
  await expect(lines).toContainText('the disk is slow');

  await page.getByRole('link', { name: t.incident.around() }).click();
  const minute = page.getByRole('complementary', { name: t.like(t.timeline.panel({ server: 'host', time: '{}' })) });
  await expect(
    minute.getByRole('region', { name: t.moment.containerLines({ container: name }), exact: true }),
  ).toBeVisible();
});

test('nothing is said of what an agent allows before the servers are known', async ({ page, account, site }) => {
  const server = await site.server(account, 'reserved');
  const threshold = { server_id: server.id, metric_type: 'memory', comparison: 'gt', threshold_value: 0.01 };
  await site.call('POST', '/alerts/thresholds', account.token, { ...threshold, enabled: true });
  await site.agent(account, server);
  const id = await openAlert(site, account);
  const answer = await hold(page, '**/api/v1/servers?*');
  await enter(page, account, `/alerts/${id}`);

  const lines = page.getByRole('region', { name: t.moment.lines(), exact: true });
  await expect(lines).toContainText(t.moment.searching());
  answer();
  await expect(lines).toContainText(t.moment.logsNotAllowed());
});

test('what is below the chart of an alert stays where it is when the values come', async ({ page, account, site }) => {
  const server = await site.server(account, 'steady');
  const threshold = { server_id: server.id, metric_type: 'memory', comparison: 'gt', threshold_value: 0.01 };
  await site.call('POST', '/alerts/thresholds', account.token, { ...threshold, enabled: true });
  await site.agent(account, server);
  const id = await openAlert(site, account);
  const answer = await hold(page, '**/api/v1/metrics/*/series?*');
  const processes = page.waitForResponse('**/api/v1/metrics/*/processes*');
  await enter(page, account, `/alerts/${id}`);

  await expect(page.getByRole('heading', { level: 1 })).toContainText('steady');
  const add = page.getByRole('region', { name: t.moment.events() }).getByRole('button', { name: t.annotations.add() });
  await expect(add).toBeVisible();
  // They stand above it, and are asked for a moment after the page is there.
  await processes;
  await expect(page.getByRole('region', { name: t.moment.processes() })).toHaveAttribute('aria-busy', 'false');
  const before = await add.boundingBox();
  if (!before) throw new Error('the button has no place');
  answer();
  await expect(page.getByRole('figure').locator('canvas')).toBeVisible();

  await expect.poll(async () => (await add.boundingBox())?.y).toBe(before.y);
});

test('what happened the last times stands beside an alert', async ({ signedIn: page, account, site }) => {
  const server = await site.server(account, 'again');
  const threshold = { server_id: server.id, metric_type: 'memory', comparison: 'gt', threshold_value: 0.01 };
  const { id: rule } = await site.call<{ id: string }>('POST', '/alerts/thresholds', account.token, {
    ...threshold,
    enabled: true,
  });
  await site.agent(account, server);
  const newest = async (status: string) => {
    const all = await site.call<{ id: string }[]>('GET', `/alerts?status=${status}`, account.token);
    return all[0]?.id ?? '';
  };
  await site.until(async () => (await newest('active')) !== '', 'the first alert is open');
  const first = await newest('active');
  await site.call('POST', `/alerts/${first}/acknowledge`, account.token);
  await site.call('POST', `/alerts/${first}/notes`, account.token, { text: 'Too little memory.' });
  // It recovers, and fires again.
  await site.call('PUT', `/alerts/thresholds/${rule}`, account.token, { threshold_value: 100 });
  await site.until(async () => (await newest('resolved')) === first, 'the first alert is over');
  await site.call('PUT', `/alerts/thresholds/${rule}`, account.token, { threshold_value: 0.01 });
  await site.until(async () => (await newest('active')) !== '', 'the second alert is open');

  await page.goto(`/alerts/${await newest('active')}`);

  const earlier = page.getByRole('listitem').filter({ hasText: 'Too little memory.' });
  await expect(earlier).toContainText(t.incident.acknowledgedBy({ user: account.username }));
  await earlier.getByRole('link').click();
  await expect(page).toHaveURL(new RegExp(first));
});
