import { PASSWORD, Site } from './support/site.ts';
import { expect, navigation, tab, test } from './support/test.ts';

test('from nothing to a live chart: register, add a server, run its line', async ({ page, site }) => {
  const username = site.unique('grace');

  await page.goto('/register');
  await page.getByLabel('User name').fill(username);
  await page.getByLabel('E-mail').fill(`${username}@example.com`);
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByLabel('Password once more').fill(PASSWORD);
  await page.getByRole('button', { name: /account$/ }).click();
  // One: add a server, which the empty fleet leads to.
  await page.getByRole('main').getByRole('link', { name: 'Add server' }).first().click();
  await page.getByLabel('Name').fill('first');
  await page.getByRole('button', { name: 'Continue' }).click();
  // Two: the line. What it says is what the agent is given.
  const line = page.getByLabel('Line that installs the agent');
  const [, key = ''] = /--key (\S+)/.exec(await line.innerText()) ?? [];
  expect(key).toMatch(/^sbk_/);
  await expect(page.getByText('Waiting for the agent')).toBeVisible();
  site.startAgent(key);
  // Three: the page has turned live by itself.
  await expect(page.getByRole('heading', { name: 'first is live' })).toBeVisible();
  await page.getByRole('link', { name: 'Open the server' }).click();

  await expect(page.getByRole('heading', { name: 'first', level: 1 })).toBeVisible();
  await expect(page.getByText('Online', { exact: true })).toBeVisible();
  for (const title of ['CPU', 'Memory']) {
    const chart = page.getByRole('figure').filter({ has: page.getByRole('heading', { name: title, exact: true }) });
    await expect(chart.locator('canvas')).toBeVisible();
    await expect(chart.getByRole('slider')).toHaveAttribute('aria-valuetext', /\d/);
  }
});

test('the first account of a service is made before anything else', async ({ page, alone }) => {
  await page.goto(`${alone.origin}/servers/new`);

  await expect(page.getByRole('heading', { name: 'Make the first account' })).toBeVisible();
  await page.getByLabel('User name').fill('root');
  await page.getByLabel('E-mail').fill('root@example.com');
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByLabel('Password once more').fill(PASSWORD);
  await page.getByRole('button', { name: 'Make the account' }).click();

  await expect(page).toHaveURL(`${alone.origin}/servers/new`);
  await navigation(page).getByRole('link', { name: 'Account' }).click();
  await expect(page.getByText('administrator')).toBeVisible();
});

test('the first account of a service that others can reach needs the code in its log', async ({ page, origins }) => {
  const site = await Site.start('0.0.0.0:0');
  const origin = site.address.replace('0.0.0.0', '127.0.0.1');
  origins.push(origin);
  await expect.poll(() => site.setupCode()).toBeTruthy();

  await page.goto(`${origin}/register`);
  await page.getByLabel('User name').fill('root');
  await page.getByLabel('E-mail').fill('root@example.com');
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByLabel('Password once more').fill(PASSWORD);
  await page.getByLabel('Setup code').fill('00000-00000-00000-00000');
  await page.getByRole('button', { name: 'Make the account' }).click();
  await expect(page.getByLabel('Setup code')).toHaveAccessibleDescription(/not the setup code/);
  await page.getByLabel('Setup code').fill(site.setupCode() ?? '');
  await page.getByRole('button', { name: 'Make the account' }).click();

  await expect(navigation(page).getByRole('link', { name: 'Account' })).toBeVisible();
  await page.close();
  await site.stop();
});

test('what is wrong with an account is said at its field', async ({ page, account }) => {
  await page.goto('/register');
  await page.getByLabel('User name').fill(account.username);
  await page.getByLabel('E-mail').fill('nobody');
  await page.getByLabel('Password', { exact: true }).fill('short');
  await page.getByLabel('Password once more').fill('other');
  await page.getByRole('button', { name: 'Create account' }).click();

  await expect(page.getByLabel('E-mail')).toHaveAccessibleDescription(/e-mail/i);
  await expect(page.getByLabel('Password', { exact: true })).toHaveAccessibleDescription(/8/);
  await expect(page.getByLabel('Password once more')).toHaveAccessibleDescription(/same|match|unlike|differ/i);

  // The name is taken: only the service knows.
  await page.getByLabel('E-mail').fill('somebody@example.com');
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByLabel('Password once more').fill(PASSWORD);
  await page.getByRole('button', { name: 'Create account' }).click();
  await expect(page.getByLabel('User name')).toHaveAccessibleDescription(/taken|already/i);
});

test('what the service finds wrong with a server is said at its field', async ({ signedIn: page }) => {
  await page.goto('/servers/new');
  await page.getByLabel('Name').fill('web');
  await page.getByLabel('Host').fill('not a host');
  await page.getByRole('button', { name: 'Continue' }).click();

  const host = page.getByLabel('Host');
  await expect(host).toHaveAttribute('aria-invalid', 'true');
  await expect(host).toHaveAccessibleDescription(/host/i);
  await host.fill('web.example.com');
  await page.getByRole('button', { name: 'Continue' }).click();
  await expect(page.getByLabel('Line that installs the agent')).toBeVisible();
});

test('the line is of this service, which serves what it downloads', async ({ signedIn: page, site }) => {
  await page.goto('/servers/new');
  await page.getByLabel('Name').fill('web');
  await page.getByRole('button', { name: 'Continue' }).click();

  const line = page.getByLabel('Line that installs the agent');
  await expect(line).toContainText(`curl -fsSL ${site.origin}/install.sh | sudo sh -s -- --key sbk_`);
  // The service closes connections that rest, and this one may rest since the page was opened.
  const script = await page.request.get('/install.sh', { maxRetries: 2 });
  expect(script.status()).toBe(200);
  const text = await script.text();
  await page.getByRole('checkbox', { name: 'Run commands' }).check();
  await page.getByRole('checkbox', { name: 'Terminal' }).check();
  await page.getByRole('checkbox', { name: 'Read logs' }).check();
  await page.getByRole('radio', { name: 'Start and stop them' }).check();
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

  await expect(page.getByRole('heading', { name: 'No agent has connected yet' })).toBeVisible();
  await page.getByRole('main').getByRole('link', { name: 'Create API Key' }).click();
  await expect(tab(page, 'API Keys')).toHaveAttribute('aria-current', 'page');
});
