import { brotliCompressSync } from 'node:zlib';
import type { Page } from '@playwright/test';
import { enter, expect, expectFits, navigation, test } from './support/test.ts';
import * as t from './support/texts.ts';

test('a page asks nobody but the service, and breaks no rule of its policy', async ({ page, site }) => {
  const asked: string[] = [];
  page.on('request', (request) => asked.push(new URL(request.url()).origin));

  await page.goto('/');

  await expect(page).toHaveURL(/sign-in/);
  await page.waitForLoadState('networkidle');
  expect(new Set(asked)).toEqual(new Set([site.origin]));
});

test('a first visit leaves nothing in the console', async ({ page }) => {
  const said: string[] = [];
  page.on('console', (message) => message.type() === 'error' && said.push(message.text()));
  const refused: string[] = [];
  page.on('response', (response) => response.status() >= 400 && refused.push(response.url()));

  await page.goto('/');
  await expect(page.getByRole('button', { name: t.app.signIn(), exact: true })).toBeVisible();
  // What the page asks for after that may be refused, too.
  await page.waitForLoadState('networkidle');

  expect(refused).toEqual([]);
  // Said of each page without HTTPS.
  expect(said.filter((text) => !text.includes('Cross-Origin-Opener-Policy'))).toEqual([]);
});

/** Holds the program of the page back until it is released. */
async function hold(page: Page): Promise<() => void> {
  let release = () => {};
  const held = new Promise<void>((done) => (release = done));
  await page.route('**/assets/index-*.js', async (route) => {
    await held;
    await route.continue();
  });
  return release;
}

test('the service is asked before the program of the page is here, once', async ({ page, account, site }) => {
  await site.server(account, 'early');
  await enter(page, account, '/account');
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  const next = await page.context().newPage();
  const asked: string[] = [];
  next.on('request', (request) => {
    const { pathname } = new URL(request.url());
    if (pathname.startsWith('/api/')) asked.push(pathname);
  });
  const release = await hold(next);
  const first = ['/api/v1/auth/refresh', '/api/v1/auth/me', '/api/v1/servers'];

  await next.goto('/', { waitUntil: 'commit' });
  await expect.poll(() => [...asked].sort()).toEqual([...first].sort());
  // Who was here before sees the outline of the page.
  await expect(next.locator('#outline')).toBeVisible();
  release();

  await expect(next.getByRole('link', { name: 'early' })).toBeVisible();
  await expect(next.locator('#outline')).toHaveCount(0);
  for (const path of first.slice(0, 2)) expect(asked.filter((each) => each === path)).toHaveLength(1);
});

test('a stranger sees no outline of what they may not see', async ({ page }) => {
  const release = await hold(page);

  await page.goto('/', { waitUntil: 'commit' });
  await expect(page.locator('#outline')).toBeAttached();
  await expect(page.locator('#outline')).toBeHidden();

  release();
  await expect(page.getByRole('button', { name: t.app.signIn(), exact: true })).toBeVisible();
});

test('what a page needs is named by the page itself: no file is found late', async ({ page, control }) => {
  for (const path of ['/', `/servers/${control.server.id}`]) {
    await enter(page, control.account, path);
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
    await page.waitForLoadState('load');
    const html = await (await page.request.get(path, { headers: { Accept: 'text/html' } })).text();

    const loaded = await page.evaluate(() =>
      performance.getEntriesByType('resource').map(({ name }) => new URL(name).pathname),
    );

    const files = loaded.filter((file) => /^\/assets\/.*\.(js|css)$/.test(file));
    expect(files.length).toBeGreaterThan(3);
    expect(files.filter((file) => !html.includes(`"${file}"`))).toEqual([]);
    // A browser asks for six at a time, by HTTP/1.1.
    expect(new Set(files).size).toBeLessThanOrEqual(path === '/' ? 12 : 24);
  }
});

test('the rail gives way on a narrow window, and stays as it was chosen', async ({ signedIn: page }) => {
  await page.goto('/');
  const alerts = navigation(page).getByRole('link', { name: t.app.alerts(), exact: true });
  const width = async () => (await navigation(page).boundingBox())?.width ?? 0;
  await expect(alerts).toBeVisible();
  expect(await width()).toBeGreaterThan(200);

  await page.setViewportSize({ width: 1100, height: 800 });
  await expect.poll(width).toBeLessThan(80);
  await expect(alerts).toBeVisible();
  await expectFits(page);
  await navigation(page).getByRole('button', { name: t.app.widenRail() }).click();
  await expect.poll(width).toBeGreaterThan(200);
  await page.reload();
  await expect.poll(width).toBeGreaterThan(200);

  await page.setViewportSize({ width: 1440, height: 900 });
  await navigation(page).getByRole('button', { name: t.app.narrowRail() }).click();
  await expect.poll(width).toBeLessThan(80);
  await alerts.click();
  await expect(page).toHaveURL('/alerts');
});

/** The most that a first visit loads, compressed, without what the API answers. */
const FIRST_LOAD = 70 * 1024;

/** The compressed sizes of a page and of all files that it names. */
async function sizesOf(page: Page, path: string): Promise<Map<string, number>> {
  const read = async (file: string) =>
    brotliCompressSync(await (await page.request.get(file, { headers: { Accept: 'text/html,*/*' } })).body()).length;
  const html = await (await page.request.get(path, { headers: { Accept: 'text/html' } })).text();
  const files = new Set([...html.matchAll(/"(\/(?:assets\/|favicon\.svg)[^"]*)"/g)].map(([, file]) => file ?? ''));
  const sizes = new Map([[path, await read(path)]]);
  for (const file of files) sizes.set(file, await read(file));
  return sizes;
}

// That a page loads no other files than those that it names is a test above.
for (const path of ['/sign-in', '/'])
  test(`a first visit of ${path} loads at most 70 KiB`, async ({ page }) => {
    const sizes = await sizesOf(page, path);

    expect(sizes.size).toBeGreaterThan(5);
    const total = [...sizes.values()].reduce((sum, size) => sum + size, 0);
    expect(total, [...sizes].map(([file, size]) => `${size} ${file}`).join('\n')).toBeLessThanOrEqual(FIRST_LOAD);
  });

test('two requests in a row, and the service is asked', async ({ page, account }) => {
  await enter(page, account, '/account');
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  const next = await page.context().newPage();
  // All files but the page and the script that it begins with stay away.
  await next.route(/\/assets\/(?!boot-)/, () => new Promise<void>(() => {}));
  const asked = next.waitForRequest(/\/api\/v1\/servers/);

  await next.goto('/', { waitUntil: 'commit' });

  await asked;
  await next.close();
});

test('the manifest and what it names are there', async ({ page }) => {
  await page.goto('/');
  const href = await page.locator('link[rel="manifest"]').getAttribute('href');
  const answer = await page.request.get(href ?? '');
  expect(answer.headers()['content-type']).toContain('application/manifest+json');
  const manifest = (await answer.json()) as {
    name: string;
    start_url: string;
    icons: { src: string; type?: string }[];
  };
  expect(manifest.name).toBe(t.app.brand());

  expect(manifest.icons.length).toBeGreaterThan(1);
  for (const { src } of manifest.icons) {
    const icon = await page.request.get(src);
    expect([src, icon.status(), icon.headers()['content-type']?.split('/')[0]]).toEqual([src, 200, 'image']);
  }
  expect((await page.request.get(manifest.start_url, { headers: { Accept: 'text/html' } })).status()).toBe(200);
});
