import { once } from 'node:events';
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Page } from '@playwright/test';
import { expect, navigation, test as base } from './support/test.ts';
import { Site } from './support/site.ts';
import * as t from './support/texts.ts';

/** The pages of this provider ask for them. */
const FONTS_OF_PROVIDER = 'https://fonts.googleapis.com/';

/** A port that was free a moment ago: the provider has to know where the service is, and the service where the provider is. */
async function freePort(wanted = 0): Promise<number> {
  const server = createServer().listen(wanted, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

interface Provider {
  issuer: string;
  end: () => void;
}

/** The provider is another site than the service: its name is localhost, so that browsers hold back strict cookies. */
async function startProvider(service: string): Promise<Provider> {
  const settings = {
    redirect: `${service}/api/v1/auth/oidc/callback`,
    logout: `${service}/api/v1/auth/oidc/logout`,
    host: 'localhost',
  };
  const script = join(import.meta.dirname, 'support', 'provider.mjs');
  const child = spawn(process.execPath, [script, JSON.stringify(settings)], { stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: child.stdout })) {
    const port = /^listening on http:\/\/127\.0\.0\.1:(\d+)$/.exec(line)?.[1];
    if (port) return { issuer: `http://localhost:${port}`, end: () => void child.kill() };
  }
  throw new Error('the provider did not start');
}

async function startBoth(secretFile: string): Promise<{ site: Site; provider: Provider }> {
  const port = await freePort();
  const provider = await startProvider(`http://127.0.0.1:${port}`);
  const flags = ['--oidc-issuer', provider.issuer, '--oidc-client-id', 'signalbox', '--oidc-name', 'Corp'];
  try {
    const site = await Site.start(`127.0.0.1:${port}`, ...flags, '--oidc-client-secret-file', secretFile);
    return { site, provider };
  } catch (error) {
    provider.end();
    const isFree = await freePort(port).then(
      () => true,
      () => false,
    );
    if (isFree) throw error;
    return startBoth(secretFile);
  }
}

interface Corp {
  site: Site;
  issuer: string;
}

const test = base.extend<{ origins: string[] }, { corp: Corp }>({
  corp: [
    async ({}, use) => {
      const directory = mkdtempSync(join(tmpdir(), 'signalbox-oidc-'));
      const file = join(directory, 'client-secret');
      writeFileSync(file, 'the secret of the client', { mode: 0o600 });
      const { site, provider } = await startBoth(file);
      await site.account();
      await use({ site, issuer: provider.issuer });
      await site.stop();
      provider.end();
      rmSync(directory, { recursive: true });
    },
    { scope: 'worker', timeout: 120_000 },
  ],
  origins: async ({ corp, origins }, use) => use([...origins, corp.site.address, corp.issuer, FONTS_OF_PROVIDER]),
});

async function signInAtProvider(page: Page, name: string): Promise<void> {
  await page.getByPlaceholder('Enter any login').fill(name);
  await page.getByPlaceholder('and password').fill('any');
  await page.getByRole('button', { name: 'Sign-in' }).click();
}

test('a person signs in at the provider, stays signed in, and is signed out when they sign out there', async ({
  page,
  corp,
}) => {
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  await page.goto(`${corp.site.address}/alerts?state=open`);

  await page.getByRole('link', { name: t.signIn.signInWith({ provider: 'Corp' }) }).click();
  await signInAtProvider(page, 'ada');

  await expect(navigation(page)).toBeVisible();
  await expect(page).toHaveURL(`${corp.site.address}/alerts?state=open`);
  // A token has three parts. Its first letters alone may stand in any random value of a sign-in.
  expect(asked.filter((url) => /eyJ[\w-]+\.[\w-]+\./.test(url))).toEqual([]);
  await page.reload();
  await expect(navigation(page)).toBeVisible();
  await page.goto(`${corp.site.address}/account`);
  await expect(page.getByText('ada · ada@example.com')).toBeVisible();

  const other = await page.context().newPage();
  await other.goto(`${corp.issuer}/session/end`);
  await other.getByRole('button', { name: 'Yes, sign me out' }).click();

  await expect(page.getByRole('link', { name: t.signIn.signInWith({ provider: 'Corp' }) })).toBeVisible();
});

test('what went wrong is said in a sentence', async ({ page, corp }) => {
  await page.goto(`${corp.site.address}/sign-in`);
  await page.getByRole('link', { name: t.signIn.signInWith({ provider: 'Corp' }) }).click();
  await signInAtProvider(page, 'mallory');

  await expect(page.getByText(t.signIn.oidcEmailUnverified({ provider: 'Corp' }))).toBeVisible();
  await expect(page.getByLabel(t.signIn.usernameOrEmail())).toBeVisible();
});

test('an account is linked on its security page and then found by the provider', async ({ page, corp }) => {
  const account = await corp.site.account();
  // The provider's account stays linked to this one.
  const name = corp.site.unique('grace');
  await page.goto(`${corp.site.address}/sign-in?to=/account/security`);
  await page.getByLabel(t.signIn.usernameOrEmail()).fill(account.username);
  await page.getByLabel(t.signIn.password(), { exact: true }).fill(account.password);
  await page.getByRole('button', { name: t.signIn.withPassword() }).click();
  await page.getByRole('link', { name: t.security.link({ provider: 'Corp' }) }).click();
  await signInAtProvider(page, name);

  await expect(page.getByText(t.signIn.oidcLinked({ provider: 'Corp' }))).toBeVisible();
  await expect(page.getByText(`${name}@example.com`)).toBeVisible();
  await page.getByRole('button', { name: t.account.signOut(), exact: true }).first().click();
  await page.getByRole('link', { name: t.signIn.signInWith({ provider: 'Corp' }) }).click();

  await expect(navigation(page)).toBeVisible();
  await page.goto(`${corp.site.address}/account`);
  await expect(page.getByText(`${account.username} · ${account.email}`)).toBeVisible();
});
