import { expectAccessible } from './support/accessible.ts';
import { PASSWORD, Site } from './support/site.ts';
import { expect, navigation, tab, test } from './support/test.ts';
import { sshKey } from './support/signing.ts';
import * as t from './support/texts.ts';

test('from nothing to a live chart: register, add a server, run its line', async ({ page, site }) => {
  const username = site.unique('grace');

  await page.goto('/register');
  await page.getByLabel(t.signIn.username()).fill(username);
  await page.getByLabel(t.signIn.email()).fill(`${username}@example.com`);
  await page.getByLabel(t.signIn.password(), { exact: true }).fill(PASSWORD);
  await page.getByLabel(t.signIn.confirm()).fill(PASSWORD);
  await page.getByRole('button', { name: t.signIn.createAccount() }).click();
  // One: add a server, which the empty fleet leads to.
  await page.getByRole('main').getByRole('link', { name: t.fleet.addServer() }).first().click();
  await page.getByLabel(t.addServer.name()).fill('first');
  await page.getByRole('button', { name: t.addServer.next() }).click();
  // Two: the line. What it says is what the agent is given.
  const line = page.getByLabel(t.install.installLine());
  const [, key = ''] = /--key (\S+)/.exec(await line.innerText()) ?? [];
  expect(key).toMatch(/^sbk_/);
  await expect(page.getByText(t.addServer.waiting())).toBeVisible();
  await expectAccessible(page);
  site.startAgent(key);
  // Three: this very page is the live server, and its charts grow.
  await expect(page.getByRole('heading', { name: t.addServer.live({ name: 'first' }) })).toBeVisible();
  for (const title of [t.overview.cpu(), t.overview.memory()]) {
    const chart = page.getByRole('figure').filter({ has: page.getByRole('heading', { name: title, exact: true }) });
    await expect(chart.locator('canvas')).toBeVisible();
    await expect(chart.getByRole('slider')).toHaveAttribute('aria-valuetext', /\d/);
  }
  await expect(page.getByRole('region', { name: t.firstLook.processes() }).getByRole('listitem').first()).toBeVisible();
  await expectAccessible(page);
  await page.getByRole('link', { name: t.addServer.open() }).click();

  await expect(page.getByRole('heading', { name: 'first', level: 1 })).toBeVisible();
  await expect(page.getByText(t.server.online(), { exact: true })).toBeVisible();
  for (const title of [t.overview.cpu(), t.overview.memory()]) {
    const chart = page.getByRole('figure').filter({ has: page.getByRole('heading', { name: title, exact: true }) });
    await expect(chart.locator('canvas')).toBeVisible();
    await expect(chart.getByRole('slider')).toHaveAttribute('aria-valuetext', /\d/);
  }
});

test('the first minute shows containers, lines of the log, and a sample each second while somebody looks', async ({
  signedIn: page,
  site,
  control,
}) => {
  // Named so that it is among the first.
  const container = site.unique(`a-first-one-${process.pid}`);
  await control.docker.run(container);
  await page.goto('/servers/new');
  await page.getByLabel(t.addServer.name()).fill('watched');
  await page.getByRole('button', { name: t.addServer.next() }).click();
  const [, key = ''] = /--key (\S+)/.exec(await page.getByLabel(t.install.installLine()).innerText()) ?? [];
  const write = site.keepsSystemLog(key, 'kernel: eth0 is up');
  site.startAgent(
    key,
    ...['--logs', 'on', '--docker', 'read', '--docker-host', control.docker.host, '--interval', '5'],
  );

  const containers = page.getByRole('region', { name: t.firstLook.containers() });
  await expect(containers.getByRole('listitem').filter({ hasText: container })).toContainText(/\d %/);
  const logs = page.getByRole('region', { name: t.firstLook.logs() });
  await expect(logs.getByText('eth0 is up')).toBeVisible();
  write('sshd: accepted a key of ada');
  await expect(logs.getByText('accepted a key of ada')).toBeVisible();
  const title = t.overview.cpu();
  const chart = page.getByRole('figure').filter({ has: page.getByRole('heading', { name: title, exact: true }) });
  await chart.getByRole('button', { name: t.charts.asTable({ title }) }).click();
  const times = chart.getByRole('rowheader');
  // Seven samples are six seconds, which would be half a minute at the agent's own interval.
  const secondsOfSeven = async () => {
    const shown = (await times.allInnerTexts()).map((text) => /:(\d\d):(\d\d)/.exec(text));
    const [newest, oldest] = [shown[0], shown[6]].map((parts) => Number(parts?.[1]) * 60 + Number(parts?.[2]));
    return ((newest ?? NaN) - (oldest ?? NaN) + 3_600) % 3_600;
  };
  await expect.poll(secondsOfSeven).toBeLessThan(12);
  await expect(page.getByText(t.like(t.firstLook.eachSecond({ time: '{}' })))).toBeVisible();
});

test('the first account of a service is made before anything else', async ({ page, alone }) => {
  await page.goto(`${alone.origin}/servers/new`);

  await expect(page.getByRole('heading', { name: t.signIn.createAdmin() })).toBeVisible();
  await page.getByLabel(t.signIn.username()).fill('root');
  await page.getByLabel(t.signIn.email()).fill('root@example.com');
  await page.getByLabel(t.signIn.password(), { exact: true }).fill(PASSWORD);
  await page.getByLabel(t.signIn.confirm()).fill(PASSWORD);
  await page.getByRole('button', { name: t.signIn.createAccountFirst() }).click();

  await expect(page).toHaveURL(`${alone.origin}/servers/new`);
  await navigation(page).getByRole('link', { name: t.account.title() }).click();
  await expect(page.getByText(t.account.administrator(), { exact: true })).toBeVisible();
});

test('the first account of a service that others can reach needs the code in its log', async ({ page, origins }) => {
  const site = await Site.start('0.0.0.0:0');
  const origin = site.address.replace('0.0.0.0', '127.0.0.1');
  origins.push(origin);
  await expect.poll(() => site.setupCode()).toBeTruthy();

  await page.goto(`${origin}/register`);
  await page.getByLabel(t.signIn.username()).fill('root');
  await page.getByLabel(t.signIn.email()).fill('root@example.com');
  await page.getByLabel(t.signIn.password(), { exact: true }).fill(PASSWORD);
  await page.getByLabel(t.signIn.confirm()).fill(PASSWORD);
  await page.getByLabel(t.signIn.setupCode()).fill('00000-00000-00000-00000');
  await page.getByRole('button', { name: t.signIn.createAccountFirst() }).click();
  await expect(page.getByLabel(t.signIn.setupCode())).toHaveAccessibleDescription(/not the setup code/);
  await page.getByLabel(t.signIn.setupCode()).fill(site.setupCode() ?? '');
  await page.getByRole('button', { name: t.signIn.createAccountFirst() }).click();

  await expect(navigation(page).getByRole('link', { name: t.account.title() })).toBeVisible();
  await page.close();
  await site.stop();
});

test('what is wrong with an account is said at its field', async ({ page, account }) => {
  await page.goto('/register');
  await page.getByLabel(t.signIn.username()).fill(account.username);
  await page.getByLabel(t.signIn.email()).fill('nobody');
  await page.getByLabel(t.signIn.password(), { exact: true }).fill('short');
  await page.getByLabel(t.signIn.confirm()).fill('other');
  await page.getByRole('button', { name: t.signIn.createAccount() }).click();

  await expect(page.getByLabel(t.signIn.email())).toHaveAccessibleDescription(t.signIn.noEmail());
  await expect(page.getByLabel(t.signIn.password(), { exact: true })).toHaveAccessibleDescription(/8/);
  await expect(page.getByLabel(t.signIn.confirm())).toHaveAccessibleDescription(t.signIn.unlike());

  // The name is taken: only the service knows.
  await page.getByLabel(t.signIn.email()).fill('somebody@example.com');
  await page.getByLabel(t.signIn.password(), { exact: true }).fill(PASSWORD);
  await page.getByLabel(t.signIn.confirm()).fill(PASSWORD);
  await page.getByRole('button', { name: t.signIn.createAccount() }).click();
  await expect(page.getByLabel(t.signIn.username())).toHaveAccessibleDescription(/taken|already/i);
});

test('what the service finds wrong with a server is said at its field', async ({ signedIn: page }) => {
  await page.goto('/servers/new');
  await page.getByLabel(t.addServer.name()).fill('web');
  await page.getByLabel(t.addServer.host()).fill('not a host');
  await page.getByRole('button', { name: t.addServer.next() }).click();

  const host = page.getByLabel(t.addServer.host());
  await expect(host).toHaveAttribute('aria-invalid', 'true');
  await expect(host).toHaveAccessibleDescription(/host/i);
  await host.fill('web.example.com');
  await page.getByRole('button', { name: t.addServer.next() }).click();
  await expect(page.getByLabel(t.install.installLine())).toBeVisible();
});

test('signers are named by the line alone, which never holds half of them', async ({ signedIn: page, site }) => {
  const [kind = '', key = ''] = sshKey(site, 'ada').pub.split(' ');
  const sent: string[] = [];
  page.on('request', (request) => sent.push(`${request.url()} ${request.postData() ?? ''}`));
  await page.goto('/servers/new');
  await page.getByLabel(t.addServer.name()).fill('guarded');
  await page.getByRole('button', { name: t.addServer.next() }).click();
  const line = page.getByLabel(t.install.installLine());
  await expect(line).not.toContainText('signed');

  await page.getByText(t.signers.ask(), { exact: true }).click();
  const field = page.getByLabel(t.signers.label());
  await field.fill(`${kind} ${key} ada\n${site.origin.replace('http:', 'https:')}/ops.keys`);
  const fault = t.signers.inLine({ line: '2', fault: t.signers.faultOwn() });
  await expect(page.getByText(fault, { exact: true })).toBeVisible();
  await expect(field).toHaveAttribute('aria-invalid', 'true');
  await expect(line).not.toContainText('--signers');
  await expectAccessible(page);
  await field.fill(`${kind} ${key} ada\nben=https://github.com/ben.keys`);

  await expect(line).toContainText(
    `--commands signed --docker read --signers '${kind} ${key} ada' --signers ben=https://github.com/ben.keys`,
  );
  // Most keys have characters that an address encodes.
  const forms = [key, encodeURIComponent(key)];
  expect(sent.filter((request) => forms.some((form) => request.includes(form)))).toEqual([]);
});

test('a server that has just been added says what its agent does not allow, and notices when it does', async ({
  signedIn: page,
  site,
}) => {
  await page.goto('/servers/new');
  await page.getByLabel(t.addServer.name()).fill('careful');
  await page.getByRole('button', { name: t.addServer.next() }).click();
  const line = page.getByLabel(t.install.installLine());
  const [, key = ''] = /--key (\S+)/.exec(await line.innerText()) ?? [];
  const agent = site.startAgent(key);

  const logs = page.getByRole('region', { name: t.firstLook.logs() });
  await logs.getByText(t.firstLook.allow(), { exact: true }).click();
  await expect(logs.getByLabel(t.allow.line())).toHaveText(
    `curl -fsSL ${site.origin}/install.sh | sudo sh -s -- --logs on`,
  );
  // The line with the key is still there for who needs it once more.
  await page.getByText(t.addServer.line(), { exact: true }).click();
  await expect(line).toContainText(key);

  await agent.end();
  await expect(page.getByRole('heading', { name: t.addServer.lost({ name: 'careful' }) })).toBeVisible();
  site.startAgent(key, '--logs', 'on');

  await expect(page.getByRole('heading', { name: t.addServer.live({ name: 'careful' }) })).toBeVisible();
  await expect(logs.getByText(t.firstLook.allow(), { exact: true })).toBeHidden();
  await expect(logs.getByRole('link')).toHaveAttribute('href', /\/logs$/);
});

test('the line is of this service, which serves what it downloads', async ({ signedIn: page, site }) => {
  await page.goto('/servers/new');
  await page.getByLabel(t.addServer.name()).fill('web');
  await page.getByRole('button', { name: t.addServer.next() }).click();

  const line = page.getByLabel(t.install.installLine());
  await expect(line).toContainText(`curl -fsSL ${site.origin}/install.sh | sudo sh -s -- --key sbk_`);
  // The service closes connections that rest, and this one may rest since the page was opened.
  const script = await page.request.get('/install.sh', { maxRetries: 2 });
  expect(script.status()).toBe(200);
  const text = await script.text();
  await page.getByRole('radio', { name: t.addServer.everything() }).check();
  await expect(line).toContainText('--commands on --terminal on --docker control --logs on');
  await page.getByRole('radio', { name: t.addServer.careful() }).check();
  await expect(line).not.toContainText('--commands');
  await page.getByRole('radio', { name: t.addServer.choose() }).check();
  await page.getByRole('checkbox', { name: t.install.commands() }).check();
  await page.getByRole('checkbox', { name: t.install.terminal() }).check();
  await page.getByRole('checkbox', { name: t.install.logs() }).check();
  await page.getByRole('radio', { name: t.install.dockerControl() }).check();
  await expect(line).toContainText('--commands on');
  // Each option that the checkboxes write is one that the script knows.
  const said = await line.innerText();
  for (const [, option = ''] of said.matchAll(/(--[a-z]+ [a-z]+\b)/g)) expect(text).toContain(option.split(' ')[0]);
  const { agents } = (await (await page.request.get('/install')).json()) as { agents: unknown[] };
  expect(agents).toHaveLength(1);
});

test('a server that no agent has reached says what to do', async ({ signedIn: page, account, site }) => {
  const server = await site.server(account);

  await page.goto(`/servers/${server.id}`);

  await expect(page.getByRole('heading', { name: t.containers.pending() })).toBeVisible();
  await page.getByRole('main').getByRole('link', { name: t.keys.create() }).click();
  await expect(tab(page, t.server.keys())).toHaveAttribute('aria-current', 'page');
});
