import { expect, test as base, type BrowserContext, type Locator, type Page } from '@playwright/test';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Docker } from './docker.ts';
import { Site, type Account, type ManagedServer } from './site.ts';
import * as t from './texts.ts';

/** A server whose real agent allows everything, shared by the tests of a worker. */
export interface Control {
  account: Account;
  server: ManagedServer;
  /** A directory whose files its agent may read as logs. */
  logs: string;
  docker: Docker;
}

/** An account with a server whose agent allows everything. */
async function controlled(site: Site, name: string): Promise<Control> {
  const docker = new Docker();
  const account = await site.account();
  const server = await site.server(account, name, ['lab']);
  const logs = join(site.directory, `logs-of-${name}`);
  mkdirSync(logs);
  const allowed = ['--commands', 'on', '--terminal', 'on', '--logs', 'on', '--log-path', logs];
  await site.agent(account, server, ...allowed, '--docker', 'control', '--docker-host', docker.host);
  return { account, server, logs, docker };
}

/** Long names as people give them, of containers of the engine. */
const LONG_NAMES = ['payments-reconciliation-worker-blue', 'grafana', 'reverse-proxy-with-certificates-of-all-domains'];

interface Fixtures {
  account: Account;
  /**
   * A page of a browser in which `account` is signed in. It shows nothing yet: Firefox now and then gives up a second `goto` that
   * follows at once.
   */
  signedIn: Page;
  /** What went wrong in any page of the test unseen: a test that expects some forgives it. */
  faults: string[];
  /** A service of this test alone: to be set up, ended and started again. */
  alone: Site;
  /** Where requests may go. */
  origins: string[];
  /** A browser of somebody else, signed in. */
  visit: (account: Account, path?: string) => Promise<Page>;
}

/** A login shell reads its owner's profile first, which may wait for a minute for who knows what. */
export const FROM_A_SHELL = { timeout: 90_000 };

/** What lost the service looks for it more and more rarely: every half a minute in the end, an agent every minute. */
export const BACK = { timeout: 90_000 };

/** What a page says for a few seconds: to be called before what brings it about, and awaited after it. */
export const told = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor();

/** Messages that the console has as errors, and that are none of the page's. */
const HARMLESS = [
  // Tests run in private windows, where Chromium has no push messages and says so.
  /^Chrome currently does not support the Push API in incognito mode/,
  // Answers of 400 and more: the page shows those itself.
  /^Failed to load resource/,
  // Said of each page without HTTPS, which loses nothing by it: it opens no other page.
  /^The Cross-Origin-Opener-Policy header has been ignored/,
  // Firefox, of what a page was left before: of a socket, and of a file. A wrong type has a name.
  /^Firefox can.t establish a connection to the server at ws/,
  /^The connection to ws.* was interrupted while the page was loading/,
  /^Loading module from .* because of a disallowed MIME type \(“”\)/,
];

/**
 * Collects what nobody sees on a page: what was thrown, what the console has as an error, what the page's policy forbade,
 * and what was asked of anybody but the service.
 */
async function collect(context: BrowserContext, origins: string[], faults: string[]): Promise<void> {
  await context.addInitScript(() =>
    document.addEventListener('securitypolicyviolation', (event) =>
      console.error(`the policy forbids ${event.violatedDirective}: ${event.blockedURI}`),
    ),
  );
  const found = (text: string) => !HARMLESS.some((harmless) => harmless.test(text)) && faults.push(text);
  // Firefox says of some of its messages that they were thrown.
  context.on('weberror', (error) => found(error.error().message));
  context.on('console', (message) => message.type() === 'error' && found(message.text()));
  context.on('request', (request) => {
    const isOwn = [...origins, 'data:', 'blob:'].some((beginning) => request.url().startsWith(beginning));
    if (!isOwn) faults.push(`asked for ${request.url()}`);
  });
}

export const test = base.extend<Fixtures, { site: Site; control: Control; crowd: Control }>({
  site: [
    async ({}, use) => {
      // Some pages come under a name that is not this machine's, as a proxy would pass it on.
      const site = await Site.start('127.0.0.1:0', '--trusted-proxies', '127.0.0.1');
      // The first account is another one's, which such a service wants the setup code for: the log has it soon.
      await expect.poll(() => site.setupCode()).toBeTruthy();
      site.admin = await site.account();
      await use(site);
      await site.stop();
    },
    { scope: 'worker', timeout: 120_000 },
  ],
  control: [
    async ({ site }, use) => {
      const control = await controlled(site, 'control');
      await use(control);
      await control.docker.clear();
    },
    { scope: 'worker', timeout: 120_000 },
  ],
  crowd: [
    async ({ site }, use) => {
      const crowd = await controlled(site, 'control-plane-of-the-northern-europe-data-centre-01');
      for (let number = 2; number <= 24; number += 1) {
        const place = number % 2 === 0 ? 'northern-europe' : 'us-east';
        const name = `${number % 3 === 0 ? 'db' : 'web'}-of-the-${place}-data-centre-${String(number).padStart(2, '0')}`;
        await site.server(crowd.account, name, [place, `rack-${number % 5}`]);
      }
      for (const name of LONG_NAMES) await crowd.docker.run(`${name}-${process.pid}`);
      await use(crowd);
      await crowd.docker.clear();
    },
    { scope: 'worker', timeout: 120_000 },
  ],
  baseURL: async ({ site }, use) => use(site.origin),
  account: async ({ site }, use) => use(await site.account()),
  alone: async ({ origins, page }, use) => {
    const site = await Site.start();
    origins.push(site.origin);
    await use(site);
    // Before the service, so that no page looks for a service that is gone.
    await page.close();
    await site.stop();
  },
  origins: async ({ site }, use) => use([site.origin]),
  faults: [
    async ({ context, origins }, use) => {
      const faults: string[] = [];
      await collect(context, origins, faults);
      await use(faults);
      expect(faults).toEqual([]);
    },
    { auto: true },
  ],
  signedIn: async ({ page, account }, use) => {
    await takeCookie(page, account);
    await use(page);
  },
  visit: async ({ browser, site, origins, faults }, use) => {
    const opened: BrowserContext[] = [];
    await use(async (account, path) => {
      const context = await browser.newContext({ baseURL: site.origin });
      opened.push(context);
      await collect(context, origins, faults);
      const page = await context.newPage();
      await enter(page, account, path);
      return page;
    });
    for (const context of opened) await context.close();
  },
});

export { expect };

/** Signs in the way a person does. */
export async function signIn(page: Page, account: Account): Promise<void> {
  await page.goto('/sign-in');
  await fillSignIn(page, account);
  await expect(navigation(page)).toBeVisible();
}

export async function fillSignIn(page: Page, account: Account): Promise<void> {
  await page.getByLabel(t.signIn.usernameOrEmail()).fill(account.username);
  await page.getByLabel(t.signIn.password(), { exact: true }).fill(account.password);
  await page.getByRole('button', { name: t.signIn.signIn(), exact: true }).click();
}

/** Opens a page as somebody who signed in before. */
export async function enter(page: Page, account: Account, path = '/'): Promise<void> {
  // At the service whose page it is.
  await takeCookie(page, account, path.startsWith('http') ? new URL(path).origin : '');
  await page.goto(path);
}

/** Puts the cookie of a sign-in into a browser. */
async function takeCookie(page: Page, account: Account, service = ''): Promise<void> {
  const response = await page.request.post(`${service}/api/v1/auth/login`, {
    form: { username: account.username, password: account.password },
    headers: { 'X-Refresh-Cookie': '1' },
  });
  expect(response.status()).toBe(200);
}

export function navigation(page: Page): Locator {
  return page.getByRole('navigation', { name: t.app.mainNavigation() });
}

/** A tab of a server's page, or of another page that has some. */
export function tab(page: Page, name: string): Locator {
  return page.getByRole('main').getByRole('navigation').getByRole('link', { name });
}

/** Takes faults out that a test has brought about itself. */
export function forgive(faults: string[], expected: RegExp): void {
  faults.splice(0, faults.length, ...faults.filter((fault) => !expected.test(fault)));
}

/** Nothing makes the page itself scroll sideways, once the charts have followed the width of the window. */
export async function expectFits(page: Page): Promise<void> {
  const beyond = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  await expect.poll(beyond).toBeLessThanOrEqual(0);
}
