// Takes the pictures of the README: starts the demo, waits for its history, and photographs its pages, each as one file.
//
//   node pictures/take.mjs PROGRAM DIRECTORY [NAME...]
//
// PROGRAM is `signalbox`, DIRECTORY is where the pictures go. With names it takes only those.

import { chromium } from '@playwright/test';
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PICTURES } from './pictures.mjs';

/** Twice as many pixels, for sharp screens. */
const SCALE = 2;
/** Between 0 and 1: above the first, files grow and nobody sees a difference. The others are for what would be too large. */
const QUALITIES = [0.82, 0.7, 0.55, 0.4];
/** A reader of the README loads all of them. */
const MOST_BYTES = 150_000;
/** How long the service and the history may take. */
const PATIENCE_MS = 600_000;
/** Live charts begin to move after the first samples. */
const SETTLE_MS = 6_000;

const [program, directory, ...only] = process.argv.slice(2);
if (!program || !directory) throw new Error('usage: node pictures/take.mjs PROGRAM DIRECTORY [NAME...]');

/** Resolves with what `attempt` returns, as soon as that is something. */
async function eventually(what, attempt) {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = await attempt();
    if (found) return found;
    if (Date.now() > deadline) throw new Error(`it took too long until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

function startDemo() {
  const demo = spawn(program, ['demo', '--fleet', '24', '--listen', '127.0.0.1:0', '--log', 'error'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  demo.stdout.on('data', (part) => (said += part));
  const greeting = eventually('the demo says where it is', () => {
    if (demo.exitCode !== null) throw new Error(`the demo ended with ${demo.exitCode}`);
    return said.includes('Ctrl-C') && said;
  });
  return { demo, greeting };
}

function told(greeting, label) {
  const line = greeting.split('\n').find((line) => line.trim().startsWith(label));
  const value = line?.trim().slice(label.length).trim().split(' ')[0];
  if (!value) throw new Error(`the greeting has no ${label}`);
  return value;
}

/** The service's API for one account. */
async function signIn(base, username, password) {
  const answer = await fetch(`${base}/api/v1/auth/login`, {
    method: 'POST',
    body: new URLSearchParams({ username, password }),
  });
  const { access_token: token } = await answer.json();
  return async (path) => {
    const answer = await fetch(`${base}/api/v1${path}`, { headers: { Authorization: `Bearer ${token}` } });
    if (!answer.ok) throw new Error(`${path} answers ${answer.status}`);
    return answer.json();
  };
}

/** What the addresses of the pictures need. */
async function look(read) {
  const servers = await read('/servers?limit=500');
  const server = (name) => {
    const found = servers.find((it) => it.name === name);
    if (!found) throw new Error(`the demo has no ${name}`);
    return found.id;
  };
  const resolved = await read('/alerts?status=resolved&limit=500');
  return {
    server,
    alert: (name) => {
      const found = resolved.find((it) => it.server_id === server(name));
      if (!found) throw new Error(`the demo has no alert of ${name}`);
      return found.id;
    },
  };
}

/** The history is written from the newest to the oldest: this is the last of it. */
async function historyIsWritten(read, server) {
  const day = 86_400_000;
  const start = new Date(Math.floor(Date.now() / day) * day - 7 * day);
  const end = new Date(start.getTime() + day - 1);
  const query = `start=${start.toISOString()}&end=${end.toISOString()}&resolution=1m&names=cpu_percent`;
  await eventually('the history is written', async () => {
    const { timestamps } = await read(`/metrics/${server('staging')}/series?${query}`);
    return timestamps.length >= 1_400;
  });
}

async function signInPage(page, base, username, password) {
  await page.goto(`${base}/sign-in`);
  await page.locator('input[autocomplete="username"], input[name="username"]').first().fill(username);
  await page.locator('input[type="password"]').first().fill(password);
  await page.locator('form button[type="submit"], form button:not([type])').first().click();
  await page.waitForURL((url) => !url.pathname.startsWith('/sign-in'));
}

/** Chromium writes WebP by itself, but not as a screenshot. */
async function asWebp(blank, png, quality) {
  const url = await blank.evaluate(
    async ([source, wanted]) => {
      const image = new Image();
      image.src = source;
      await image.decode();
      const canvas = document.createElement('canvas');
      canvas.width = image.naturalWidth;
      canvas.height = image.naturalHeight;
      canvas.getContext('2d').drawImage(image, 0, 0);
      return canvas.toDataURL('image/webp', wanted);
    },
    [`data:image/png;base64,${png.toString('base64')}`, quality],
  );
  return Buffer.from(url.slice(url.indexOf(',') + 1), 'base64');
}

/** Photographs one address. */
async function take(browser, { name, size, dark = false, path }, base, account) {
  const context = await browser.newContext({
    viewport: size,
    deviceScaleFactor: SCALE,
    colorScheme: dark ? 'dark' : 'light',
    reducedMotion: 'reduce',
    locale: 'en-GB',
    timezoneId: 'UTC',
  });
  const [page, blank] = [await context.newPage(), await context.newPage()];
  await page.bringToFront();
  await signInPage(page, base, account.username, account.password);
  const answer = await page.goto(`${base}${path}`);
  if (!answer?.ok()) throw new Error(`${path} answers ${answer?.status()}`);
  await page.waitForFunction(() => !document.querySelector('[aria-busy="true"]'), undefined, { timeout: 60_000 });
  await page.evaluate(() => document.fonts.ready);
  await page.waitForTimeout(SETTLE_MS);
  await page.mouse.move(0, 0);
  const png = await page.screenshot({ animations: 'disabled', caret: 'hide' });
  let webp;
  for (const quality of QUALITIES) {
    webp = await asWebp(blank, png, quality);
    if (webp.length <= MOST_BYTES) break;
  }
  if (webp.length > MOST_BYTES) throw new Error(`${name} has ${webp.length} bytes`);
  writeFileSync(join(directory, `${name}.webp`), webp);
  await context.close();
  return webp.length;
}

const { demo, greeting } = startDemo();
let browser;
try {
  const said = await greeting;
  const [base, username, password] = ['address', 'user name', 'password'].map((label) => told(said, label));
  const read = await signIn(base, username, password);
  const known = await look(read);
  await historyIsWritten(read, known.server);
  browser = await chromium.launch({
    executablePath: process.env.SIGNALBOX_CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--hide-scrollbars'],
  });
  mkdirSync(directory, { recursive: true });
  const wanted = PICTURES.filter(({ name }) => only.length === 0 || only.includes(name));
  for (const picture of wanted) {
    const path = picture.path(known);
    const bytes = await take(browser, { ...picture, path }, base, { username, password });
    console.log(`${picture.name}.webp, ${Math.round(bytes / 1_000)} kB: ${path}`);
  }
} finally {
  await browser?.close();
  demo.kill('SIGTERM');
}
