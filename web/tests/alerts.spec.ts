import { answerTo } from './support/answer.ts';
import { expectAccessible } from './support/accessible.ts';
import { address } from './support/pages.ts';
import { enter, expect, navigation, tab, test, told } from './support/test.ts';
import * as t from './support/texts.ts';

test('a crossed threshold is seen everywhere by itself, is acknowledged, and is resolved', async ({
  signedIn: page,
  context,
  account,
  site,
}) => {
  const server = await site.server(account, 'busy');
  await site.agent(account, server);
  const fleet = await context.newPage();
  await fleet.goto('/');
  const ofServer = await context.newPage();
  await ofServer.goto(`/servers/${server.id}`);
  await expect(fleet.getByText(t.fleet.noAlerts())).toBeVisible();
  await expect(ofServer.getByRole('heading', { name: 'busy', level: 1 })).toBeVisible();

  await page.goto('/alerts?view=thresholds');
  await page.getByRole('button', { name: t.serverAlerts.addRule() }).first().click();
  const form = page.getByRole('dialog', { name: t.serverAlerts.addRule() });
  await form.getByLabel(t.thresholds.forLabel(), { exact: true }).selectOption({ label: 'busy' });
  await form.getByLabel(t.thresholds.metric()).selectOption({ label: t.metrics.memoryName() });
  await form.getByLabel(t.like(t.thresholds.value({ unit: '{}' }))).fill('0.01');
  await form.getByLabel(t.thresholds.holds()).fill('0');
  await form.getByLabel(t.thresholds.severity()).selectOption({ label: t.thresholds.critical() });
  await form.getByRole('button', { name: t.serverAlerts.save() }).click();
  await expect(form).toBeHidden();

  // Nobody loads anything: the badge, the fleet, the server's tab, the list.
  await expect(navigation(page).getByRole('link', { name: t.alerts.title() })).toContainText('1');
  await expect(navigation(fleet).getByRole('link', { name: t.alerts.title() })).toContainText('1');
  const band = fleet.getByRole('region', { name: t.serverAlerts.openAlerts() });
  await expect(band).toContainText('busy');
  await expect(band).toContainText(t.severity.critical());
  // What is wrong now, in its own words, and not what was measured first.
  await expect(
    band.getByRole('link', {
      name: t.like(t.alertSentence.withPeak({ sentence: 'Memory above 0.01 %', side: 'other', peak: '{}' })),
    }),
  ).toBeVisible();
  await expect(
    fleet.getByRole('link', { name: t.fleet.openAlertsOf({ count: 1, severity: t.severity.critical() }) }),
  ).toBeVisible();
  await expect(tab(ofServer, t.alerts.title())).toContainText('1');
  await tab(page, t.alerts.open()).click();
  const row = page.getByRole('row').filter({ hasText: 'busy' });
  await expect(row).toContainText(t.severity.active());

  await row.getByRole('checkbox').check();
  const acknowledge = page.getByRole('button', { name: t.alerts.acknowledge() });
  await acknowledge.click();
  await expect(row).toContainText(t.severity.acknowledged());
  // The button keeps the focus, though nothing is chosen any more.
  await expect(row.getByRole('checkbox')).not.toBeChecked();
  await expect(acknowledge).toBeFocused();
  // Somebody takes care of it: it does not call any more, and is not gone.
  await expect(navigation(fleet).getByRole('link', { name: t.alerts.title(), exact: true })).toBeVisible();
  await expect(band).toContainText(t.severity.acknowledged());

  await row.getByRole('link', { name: /memory/i }).click();
  await expect(
    page
      .getByRole('listitem')
      .filter({ hasText: t.alerts.eventBy({ event: t.alerts.acknowledged(), user: account.username }) }),
  ).toContainText(account.username);
  await page.getByRole('button', { name: t.alerts.resolve() }).click();
  await expect(
    page
      .getByRole('listitem')
      .filter({ hasText: t.alerts.eventBy({ event: t.alerts.resolved(), user: account.username }) }),
  ).toContainText(account.username);
  await expect(fleet.getByText(t.fleet.noAlerts())).toBeVisible();
  await expect(band).toBeHidden();
  await expect(tab(ofServer, t.alerts.title())).not.toContainText('1');

  await page.goto('/alerts?view=history');
  await expect(page.getByRole('row').filter({ hasText: 'busy' })).toContainText(t.alerts.eventResolved());
});

test('a threshold is dragged in the chart, and kept where it lands', async ({ signedIn: page, account, site }) => {
  const server = await site.server(account, 'dragged');
  await site.agent(account, server);
  await page.goto(`/servers/${server.id}/alerts?new=memory`);
  await expect(page.getByText(t.serverAlerts.noRule())).toBeVisible();
  const editor = page.getByRole('region', { name: t.serverAlerts.addRule() }).filter({ has: page.getByRole('figure') });
  const value = editor.getByLabel(t.like(t.thresholds.value({ unit: '{}' })));
  await value.fill('80');
  const handle = editor.locator('.handle', { has: page.locator('span') }).last();
  await expect(handle).toBeVisible();
  await expect(editor.getByRole('slider')).toHaveAttribute('aria-valuetext', /\d/);
  // It moves until the chart has its first samples and its place.
  let before = '';
  const isStill = async () => {
    const now = JSON.stringify([await handle.boundingBox(), await editor.getByRole('slider').boundingBox()]);
    const same = now === before;
    before = now;
    return same;
  };
  await expect.poll(isStill, { intervals: [500] }).toBe(true);
  const grip = await handle.locator('span').boundingBox();
  const plot = await editor.getByRole('slider').boundingBox();
  if (!grip || !plot) throw new Error('the chart is not there');
  const [x, y] = [grip.x + grip.width / 2, grip.y + grip.height / 2];

  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x, y + plot.height / 4, { steps: 5 });

  // The line follows the pointer, and the axis does not run away from it.
  await expect.poll(async () => Number(await value.inputValue())).toBeLessThan(60);
  const held = Number(await value.inputValue());
  expect(held).toBeGreaterThan(35);
  await expect
    .poll(async () => Math.abs(((await handle.boundingBox())?.y ?? 0) - grip.y - plot.height / 4))
    .toBeLessThan(6);
  // Beyond the chart it stops at its edge.
  await page.mouse.move(x, plot.y + plot.height + 300);
  await expect(value).toHaveValue('0');
  await page.mouse.move(x, y + plot.height / 4);
  await expect(value).toHaveValue(String(held));
  await page.mouse.up();
  await page.mouse.move(x, y);
  await expect(value).toHaveValue(String(held));
  const added = told(page, t.serverAlerts.added());
  await editor.getByRole('button', { name: t.serverAlerts.addRule() }).click();

  await added;
  const rules = `/alerts/thresholds?server_id=${server.id}`;
  await expect
    .poll(() => site.call<{ threshold_value: number }[]>('GET', rules, account.token))
    .toMatchObject([{ threshold_value: held }]);
});

test("a threshold is set against the server's chart, which says what it would have done", async ({
  signedIn: page,
  account,
  site,
}) => {
  const server = await site.server(account, 'measured');
  await site.agent(account, server);
  await page.goto(`/servers/${server.id}`);
  await tab(page, t.alerts.title()).click();
  await page.getByRole('button', { name: t.metrics.memoryName() }).click();

  const editor = page.getByRole('region', { name: t.serverAlerts.addRule() }).filter({ has: page.getByRole('figure') });
  await expect(editor.getByRole('figure').locator('canvas')).toBeVisible();
  await editor.getByLabel(t.thresholds.holds()).fill('0');
  await editor.getByLabel(t.like(t.thresholds.value({ unit: '{}' }))).fill('99.9');
  await expect(editor.getByText(t.like(t.serverAlerts.notFired({ time: '{}' })))).toBeVisible();
  await editor.getByLabel(t.like(t.thresholds.value({ unit: '{}' }))).fill('0.01');
  await expect(
    editor.getByText(t.like(t.serverAlerts.fired({ count: 1, time: '{}', duration: '{}', open: 'yes' }))),
  ).toBeVisible();
  const other = await page.context().newPage();
  await other.goto(page.url());
  await expect(other.getByRole('figure').locator('canvas')).toBeVisible();
  await editor.getByRole('button', { name: t.serverAlerts.addRule() }).click();

  await expect(editor).toBeHidden();
  await expect(page.getByRole('switch')).toBeChecked();
  const open = page.getByRole('region', { name: t.serverAlerts.openAlerts() });
  await expect(open.getByRole('row').filter({ hasText: /memory/i })).toContainText(t.severity.active());
  await open.getByRole('checkbox', { name: t.like(t.alertList.choose({ alert: '{}' })) }).check();
  await open.getByRole('button', { name: t.alerts.resolve() }).click();
  await expect(open.getByText(t.serverAlerts.calmOnline({ count: 1 }))).toBeVisible();
});

test('an agent that goes away is an alert, and its return resolves it', async ({ signedIn: page, account, site }) => {
  const server = await site.server(account, 'shy');
  const agent = await site.agent(account, server);
  await site.call('POST', '/alerts/thresholds', account.token, {
    server_id: server.id,
    metric_type: 'offline',
    comparison: 'gt',
    threshold_value: 1,
    enabled: true,
  });
  await page.goto('/alerts');
  await expect(page.getByRole('heading', { name: t.alerts.allGood() })).toBeVisible();

  await agent.end('SIGKILL');
  await expect(page.getByRole('row').filter({ hasText: 'shy' })).toContainText(t.severity.active());

  await site.agent(account, server);
  await expect(page.getByRole('heading', { name: t.alerts.allGood() })).toBeVisible();
});

test('what the service finds wrong with a threshold is said at its field', async ({ signedIn: page }) => {
  await page.goto('/alerts?view=thresholds');
  await page.getByRole('button', { name: t.serverAlerts.addRule() }).first().click();
  const form = page.getByRole('dialog', { name: t.serverAlerts.addRule() });
  await form.getByLabel(t.thresholds.metric()).selectOption({ label: t.metrics.cpuName() });
  await form.getByLabel(t.like(t.thresholds.value({ unit: '{}' }))).fill('80');
  // Over the value, so that it would never recover.
  await form.getByLabel(t.thresholds.recovers()).fill('95');
  await form.getByRole('button', { name: t.serverAlerts.save() }).click();

  await expect(form.getByLabel(t.thresholds.recovers())).toHaveAttribute('aria-invalid', 'true');
  await expect(form).toBeVisible();
});

test('with no threshold nothing is watched, and one press changes that', async ({ signedIn: page }) => {
  await page.goto('/alerts');

  await expect(page.getByRole('heading', { name: t.alerts.noRules() })).toBeVisible();
  await page.getByRole('button', { name: t.alerts.enableDefaults() }).click();

  await expect(page.getByRole('heading', { name: t.alerts.allGood() })).toBeVisible();
  await tab(page, t.serverAlerts.rules()).click();
  await expect(page.getByRole('switch')).toHaveCount(4);
});

test('where nobody could say whether anything is watched, not all is well', async ({ page, account }) => {
  const count = '**/api/v1/alerts/thresholds?*';
  await page.route(count, (route) => route.abort());
  await enter(page, account, '/alerts');

  await expect(page.getByRole('main').getByRole('alert')).toContainText(t.app.failed());
  await expect(page.getByRole('heading', { name: t.alerts.allGood() })).toBeHidden();

  await page.unroute(count);
  await page.getByRole('main').getByRole('button', { name: t.app.tryAgain() }).click();
  await expect(page.getByRole('heading', { name: t.alerts.noRules() })).toBeVisible();
});

test('from the silences of one server a link leads to all of them', async ({ page, account, site }) => {
  const server = await site.server(account, 'noisy');
  const ends_at = new Date(Date.now() + 3_600_000).toISOString();
  const ofServer = { server_id: server.id, reason: 'new disks', ends_at };
  await site.call('POST', '/alerts/silences', account.token, ofServer);
  await site.call('POST', '/alerts/silences', account.token, { all: true, reason: 'new network', ends_at });
  await enter(page, account, `/alerts?view=silences&server=${server.id}`);
  const silences = page.getByRole('main').getByRole('listitem');
  await expect(silences.filter({ hasText: 'new disks' })).toBeVisible();
  await expect(silences.filter({ hasText: 'new network' })).toBeHidden();

  await page.getByRole('link', { name: t.silences.ownSilences() }).click();

  await expect(silences.filter({ hasText: 'new network' })).toBeVisible();
});

test('a threshold is switched off, changed and deleted', async ({ signedIn: page, account, site }) => {
  const server = await site.server(account, 'quiet');
  const { id } = await site.call<{ id: string }>('POST', '/alerts/thresholds', account.token, {
    server_id: server.id,
    metric_type: 'cpu',
    comparison: 'gt',
    threshold_value: 90,
    enabled: true,
  });
  await page.goto('/alerts?view=thresholds');
  const row = page.getByRole('row').filter({ hasText: 'quiet' });
  await expect(row).toContainText('90');
  // The page shows what somebody else changed only once it has read the list again, after the press.
  await site.call('PUT', `/alerts/thresholds/${id}`, account.token, { threshold_value: 91 });

  await page.getByRole('switch').uncheck();
  await expect(row).toContainText('91');
  await expect(page.getByRole('switch')).toBeFocused();
  await page.reload();
  await expect(page.getByRole('switch')).not.toBeChecked();

  await page.getByRole('button', { name: t.thresholds.edit() }).click();
  await page
    .getByRole('dialog')
    .getByLabel(t.like(t.thresholds.value({ unit: '{}' })))
    .fill('42');
  await page.getByRole('dialog').getByRole('button', { name: t.serverAlerts.save() }).click();
  await expect(row).toContainText('42');

  await page.getByRole('button', { name: /^Delete/ }).click();
  await page
    .getByRole('dialog')
    .getByRole('button', { name: /^Delete/ })
    .click();
  await expect(page.getByRole('heading', { name: t.alerts.noRule() })).toBeVisible();
});

test('a rule that is switched on in the list while its editor is open is saved as it is then', async ({
  signedIn: page,
  account,
  site,
}) => {
  const server = await site.server(account, 'switched');
  const rule = { server_id: server.id, metric_type: 'cpu', comparison: 'gt', threshold_value: 90, enabled: false };
  await site.call('POST', '/alerts/thresholds', account.token, rule);
  const rules = () => site.call<object[]>('GET', `/alerts/thresholds?server_id=${server.id}`, account.token);
  await page.goto(`/servers/${server.id}/alerts`);
  await page.getByRole('row').getByRole('button', { name: t.thresholds.edit() }).click();
  const editor = page.getByRole('region', { name: t.serverAlerts.changeRule() });
  await editor.getByLabel(t.like(t.thresholds.value({ unit: '{}' }))).fill('42');

  await page.getByRole('switch').check();
  await expect.poll(rules).toMatchObject([{ enabled: true }]);
  await editor.getByRole('button', { name: t.serverAlerts.save() }).click();
  await expect(editor).toBeHidden();

  expect(await rules()).toMatchObject([{ threshold_value: 42, enabled: true }]);
});

test('a rule that is saved says that nobody is notified, until there is a channel', async ({
  signedIn: page,
  account,
  site,
}) => {
  await page.goto('/alerts?view=thresholds');
  const add = async () => {
    await page.getByRole('main').getByRole('button', { name: t.serverAlerts.addRule() }).first().click();
    await page.getByRole('dialog').getByRole('button', { name: t.alerts.save() }).click();
    await expect(page.getByRole('dialog')).toBeHidden();
  };
  await add();
  await expect(page.getByText(t.thresholds.nobody())).toBeVisible();
  await page.getByRole('link', { name: t.thresholds.addChannel() }).click();
  await expect(page).toHaveURL('/account/notifications');

  const settings = { url: 'https://ntfy.example.com/a-topic-that-nobody-can-guess' };
  await site.call('POST', '/notifications/channels', account.token, { name: 'phone', type: 'ntfy', settings });
  await page.goto('/alerts?view=thresholds');
  const asked = page.waitForResponse(/notifications\/channels/);
  await add();
  await (await asked).finished();
  await expect(page.getByRole('switch')).toHaveCount(2);
  await expect(page.getByText(t.thresholds.nobody())).toBeHidden();
});

test('the containers of a server that a rule is about scroll by keyboard where there are many', async ({
  page,
  crowd,
}) => {
  await page.route('**/api/v1/docker/*/containers?*', async (route) => {
    const answer = await answerTo(route);
    const [one] = (await answer.json()) as { id: string; name: string }[];
    const many = Array.from({ length: 90 }, (_, place) => ({ ...one, id: `${place}`, name: `worker-${place}` }));
    await route.fulfill({ json: many });
  });
  await enter(page, crowd.account, `/servers/${crowd.server.id}/alerts?new=container_state`);
  const list = page.getByRole('list', { name: t.serverAlerts.containersNow() });
  await expect(list.getByRole('listitem')).toHaveCount(90);
  await expectAccessible(page);

  await list.focus();
  await page.keyboard.press('End');

  await expect(list.getByText('worker-89', { exact: true })).toBeInViewport();
});

test('what is zoomed to on the page of an alert is in its address, and a step of the history', async ({
  page,
  crowd,
  site,
}) => {
  await enter(page, crowd.account, await address('/alerts/ALERT', site, crowd));
  const chart = page.getByRole('figure').first();
  const slider = chart.getByRole('slider');
  await expect(chart.locator('canvas')).toBeVisible();
  await expect(chart.getByRole('link', { name: t.like(t.overview.explore({ title: '{}' })) })).toHaveAttribute(
    'href',
    /^\/explore\?server=.*from=.*to=/,
  );
  await slider.focus();
  await page.keyboard.press('End');
  await page.keyboard.press('+');
  await expect(page).toHaveURL(/from=.*&to=/);
  const zoomed = page.url();
  await page.reload();
  await expect(slider).toBeVisible();
  await expect(page).toHaveURL(zoomed);

  await page.goBack();
  await expect(page).not.toHaveURL(/from=/);
  await expect(slider).toBeVisible();
});
