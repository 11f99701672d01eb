// How long a first look takes on a slow line: `node bench/slow.mjs USER PASSWORD URL [URL...]`.
//
// Each URL is a running service with at least one live server. With several, one page of each is loaded in turn, so that what
// else the machine does falls on all alike. Chromium makes the line slow: each request waits, and all share the bandwidth.
import { median } from './fleet.mjs';
import { chromiumHere } from './stage.mjs';

const TIMES = Number(process.env.TIMES ?? 5);
const LATENCY_MS = 400;
const BYTES_PER_SECOND = 50 * 1024;

const [username, password, ...urls] = process.argv.slice(2);
if (urls.length === 0) {
  console.error('node bench/slow.mjs USER PASSWORD URL [URL...]');
  process.exit(2);
}

/** Notes when the first number of a server, and the first line of a chart, are on the screen. Runs in the page. */
function watch() {
  const seen = { number: null, chart: null };
  window.seen = seen;
  /** Axes and grids are grey. */
  const hasLine = (canvas) => {
    const { width, height } = canvas;
    if (width === 0 || height === 0) return false;
    const { data } = canvas.getContext('2d').getImageData(0, 0, width, height);
    let coloured = 0;
    for (let at = 0; at < data.length; at += 4) {
      const [red, green, blue, alpha] = data.subarray(at, at + 4);
      if (alpha > 60 && Math.max(red, green, blue) - Math.min(red, green, blue) > 60) coloured += 1;
    }
    return coloured > 20;
  };
  const look = () => {
    seen.number ??= [...document.querySelectorAll('main article, main [role="row"]')].some((row) =>
      /\d\s?%/.test(row.textContent),
    )
      ? performance.now()
      : null;
    const canvas = seen.chart === null && document.querySelector('main figure canvas');
    if (canvas && hasLine(canvas)) seen.chart = performance.now();
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}

/** One cold look at a page: the milliseconds until something is painted and until `what` is seen, and what was asked for. */
async function look(browser, url, path, what) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  try {
    const answer = await context.request.post(`${url}/api/v1/auth/login`, {
      form: { username, password },
      headers: { 'X-Refresh-Cookie': '1' },
    });
    if (!answer.ok()) throw new Error(`cannot sign in at ${url}: ${answer.status()}`);
    // Somebody who was here before: the outline of the page is for them.
    await context.addInitScript(() => localStorage.setItem('signed-in', '1'));
    await context.addInitScript(watch);
    const page = await context.newPage();
    const devtools = await context.newCDPSession(page);
    await devtools.send('Network.enable');
    await devtools.send('Network.emulateNetworkConditions', {
      offline: false,
      latency: LATENCY_MS,
      downloadThroughput: BYTES_PER_SECOND,
      uploadThroughput: BYTES_PER_SECOND,
    });
    let requests = 0;
    let bytes = 0;
    devtools.on('Network.requestWillBeSent', () => (requests += 1));
    devtools.on('Network.loadingFinished', ({ encodedDataLength }) => (bytes += encodedDataLength));
    await page.goto(url + path, { waitUntil: 'commit' });
    await page.waitForFunction((name) => window.seen?.[name] != null, what, { timeout: 60_000, polling: 50 });
    const painted = await page.evaluate(() => performance.getEntriesByName('first-paint')[0]?.startTime);
    return { painted, seen: await page.evaluate((name) => window.seen[name], what), requests, bytes };
  } finally {
    await context.close();
  }
}

/** A server that sends samples. */
async function anyServer(url) {
  const form = new URLSearchParams({ username, password });
  const { access_token: token } = await (
    await fetch(`${url}/api/v1/auth/login`, { method: 'POST', body: form })
  ).json();
  const answer = await fetch(`${url}/api/v1/servers`, { headers: { Authorization: `Bearer ${token}` } });
  const online = (await answer.json()).find((server) => server.status === 'online');
  if (!online) throw new Error(`no server of ${url} is online`);
  return online.id;
}

const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;
const browser = await chromiumHere();
try {
  console.log('| service | page | something painted | readable | until then |\n|---|---|---|---|---|');
  for (const [name, what] of [
    ['fleet', 'number'],
    ['server', 'chart'],
  ]) {
    const looks = new Map(urls.map((url) => [url, []]));
    for (let time = 0; time < TIMES; time += 1)
      for (const url of urls) {
        const path = name === 'fleet' ? '/' : `/servers/${await anyServer(url)}`;
        looks.get(url).push(await look(browser, url.replace(/\/$/, ''), path, what));
      }
    for (const [url, all] of looks) {
      const of = (key) => median(all.map((each) => each[key]));
      const kibibytes = `${(of('bytes') / 1024).toFixed(1)} KiB`;
      const slowest = seconds(Math.max(...all.map(({ seen }) => seen)));
      console.log(
        `| ${url} | ${name} | ${seconds(of('painted'))} | ${seconds(of('seen'))} (slowest ${slowest}) | ${of('requests')} requests, ${kibibytes} |`,
      );
    }
  }
} finally {
  await browser.close();
}
