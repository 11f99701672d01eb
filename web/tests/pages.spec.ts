// Every page, in light and dark colours, at every width, with a mouse and on a phone: in one visit, because to open a page with
// something on it takes longer than to look at it. That no page asks anybody but the service, and breaks no rule of its policy, is
// watched in every test: see `faults`.
import type { Page } from '@playwright/test';
import { expectAccessible, OF_COLOURS } from './support/accessible.ts';
import { open, show, signedIn } from './support/pages.ts';
import { expectTargets } from './support/targets.ts';
import { PASSWORD } from './support/site.ts';
import { enter, expect, expectFits, forgive, test } from './support/test.ts';
import { expectWhole } from './support/widths.ts';
import * as t from './support/texts.ts';

/** Makes the window that of a phone, which is touched. */
async function becomePhone(page: Page): Promise<void> {
  await page.setViewportSize({ width: 390, height: 844 });
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Emulation.setTouchEmulationEnabled', { enabled: true, maxTouchPoints: 1 });
  expect(await page.evaluate(() => matchMedia('(pointer: coarse)').matches)).toBe(true);
}

async function look(page: Page): Promise<void> {
  await page.emulateMedia({ colorScheme: 'light' });
  await expectAccessible(page);
  await expectTargets(page);
  await page.emulateMedia({ colorScheme: 'dark' });
  await expectAccessible(page, ...OF_COLOURS);
  await expectWhole(page);
  await becomePhone(page);
  await expectFits(page);
  await expectTargets(page);
  await expectAccessible(page);
}

for (const shown of signedIn) {
  test(`${shown.path} is accessible, and whole at every width`, async ({ page, site, crowd }) => {
    test.slow();
    await show(page, shown, site, crowd);

    await look(page);

    await expect(shown.ready(page, crowd.server.name).first()).toBeVisible();
  });
}

for (const { path, ready } of open) {
  test(`${path} is accessible, and whole at every width`, async ({ page, account }) => {
    test.slow();
    // With an account, so that the service does not begin with making the first one.
    expect(account.token).not.toBe('');
    await page.goto(path);
    await expect(ready(page, '').first()).toBeVisible();

    await look(page);
  });
}

test('/account/users is accessible, and whole at every width', async ({ page, site }) => {
  test.slow();
  const admin = site.admin;
  if (!admin) throw new Error('nobody administers the site');
  const username = site.unique('katherine-of-the-night-shift-in-the-northern-data-centre');
  await site.call('POST', '/auth/register', undefined, {
    username,
    email: `${username}@mail.of-the-northern-data-centre.example.com`,
    full_name: 'Katherine Johnson of the night shift',
    password: PASSWORD,
    password_confirm: PASSWORD,
  });
  const email = 'somebody.with-a-long-address@of-the-northern-data-centre.example.com';
  await site.call('POST', '/users/invitations', admin.token, { email });
  await enter(page, admin, '/account/users');
  await expect(page.getByRole('row').filter({ hasText: username })).toBeVisible();
  await expect(page.getByText(email)).toBeVisible();

  await look(page);
});

test('the first look at a server is accessible, and whole at every width', async ({ page, account, site, crowd }) => {
  test.slow();
  await enter(page, account, '/servers/new');
  await page.getByLabel(t.addServer.name()).fill('bastion-of-the-northern-data-centre');
  await page.getByRole('button', { name: t.addServer.next() }).click();
  const [, key = ''] = /--key (\S+)/.exec(await page.getByLabel(t.install.installLine()).innerText()) ?? [];
  site.keepsSystemLog(key, 'payments-reconciliation-worker-blue: nothing to reconcile in any of the forty accounts');
  site.startAgent(key, '--logs', 'on', '--docker', 'read', '--docker-host', crowd.docker.host);
  for (const tile of [t.firstLook.processes(), t.firstLook.containers(), t.firstLook.logs()])
    await expect(page.getByRole('region', { name: tile }).getByRole('listitem').first()).toBeVisible();

  await look(page);
});

test('the setup of a new service is accessible, and whole at every width', async ({ page, alone }) => {
  test.slow();
  await page.goto(`${alone.origin}/`);
  await expect(page.getByRole('heading', { name: t.signIn.createAdmin() })).toBeVisible();

  await look(page);
});

test('a page without its service is accessible, and whole at every width', async ({ page, account, faults }) => {
  test.slow();
  await enter(page, account);
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  await page.route('**/api/**', (route) => route.abort());
  await page.reload();
  await expect(page.getByRole('heading', { name: t.app.unreachable() })).toBeVisible();

  await look(page);

  await expect(page.getByRole('heading', { name: t.app.unreachable() })).toBeVisible();
  forgive(faults, /^WebSocket connection to .* failed/);
});

test('containers beside the details of one are whole at every width', async ({ page, crowd }) => {
  await enter(page, crowd.account, `/servers/${crowd.server.id}/containers`);
  const name = `payments-reconciliation-worker-blue-${process.pid}`;
  await page.getByRole('table').getByRole('button', { name, exact: true }).click();
  await expect(page.getByRole('region', { name: t.containers.container({ name }) })).toBeVisible();

  await expectWhole(page);
});
