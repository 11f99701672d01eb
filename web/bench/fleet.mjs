// What the fleet costs the browser: `npm run build && node bench/fleet.mjs [servers] [time|memory|first] [paths]` (200, all and all).
// `node bench/fleet.mjs compare BEFORE AFTER [rounds]` measures the time of two built interfaces (directories) in turns.
//
// A made-up fleet in the place of the service; everything else is the built interface in a real Chromium, fed over a real
// WebSocket once a second. Each message changes every number of every server that is online.
//
// Time is what the renderer's main thread needs from a message until all that follows from it is done, in milliseconds of
// the processor (the thread's clock, so that other programs do not count), by Chromium's trace: script with the garbage
// collection, style, layout, paint (with the layers' commit), and the rest (waking up, posting). Raster and compositing run
// in other threads and processes. `otherwise` is what a second has besides: the clock that makes ages grow.
//
// DIST names another built interface than `dist`, BENCH_FIGURES the file that gets the times for `signalbox-bench table`.
import { appendFile, readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { stage, wait } from './stage.mjs';
import { afterMarks, kinds, traced } from './trace.mjs';

const UPDATES = Number(process.env.UPDATES ?? 60);
const WARM_UP = 10;
/** What a message brings about is over after this, and the next tick of the interface's clock is far. */
const WINDOW_MS = 500;
const AFTER_TICK_MS = 250;
/** Messages that are replayed: at most one comes each second. */
const MESSAGES = Number(process.env.MESSAGES ?? 3600);
const CHECKPOINTS = 5;
/** What is a row of the table of all figures, of so many servers. */
const ROWS = { '/?view=cards': 'interface-cards', '/?view=table': 'interface-table', '/wall': 'interface-wall' };
const ROWS_SERVERS = 200;

export const rounded = (value) => Math.round(value * 100) / 100;
export const median = (values) => quantile(values, 0.5);
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const quantile = (values, share) => [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) * share)];

/**
 * Milliseconds of the main thread for one update: the mean of each kind, since numbers change with every second or fourth update
 * and what lies between changes nothing; the median of the total, and what 95 % stay under.
 */
export async function updateTime({ open }, path, servers, { updates = UPDATES, scroll = 0 } = {}) {
  const { page, world, devtools, send } = await open(path, servers);
  if (scroll) await page.mouse.wheel(0, scroll);
  const tickedAt = await page.evaluate(() => window.tickedAt);
  const begin = Date.now() + 1000 - ((Date.now() - tickedAt) % 1000) + AFTER_TICK_MS;
  let seconds = 0;
  const next = () => wait(begin + 1000 * seconds++ - Date.now());
  for (let index = 0; index < WARM_UP; index += 1) {
    await next();
    send(world.step());
  }
  const events = await traced(devtools, async () => {
    for (let index = 0; index < updates; index += 1) {
      await next();
      send(world.step());
    }
    await next();
  });
  await page.close();
  const found = afterMarks(events, 'update', WINDOW_MS);
  const totals = found.updates.map(({ total }) => total);
  return {
    ...Object.fromEntries(['total', ...kinds].map((kind) => [kind, mean(found.updates.map((update) => update[kind]))])),
    middle: median(totals),
    most: quantile(totals, 0.95),
    otherwise: found.otherwise,
    count: found.updates.length,
  };
}

/** Milliseconds of the main thread to build a list of servers that are known, and those of its longest task. */
export async function render({ open }, path, servers) {
  const { page, devtools } = await open(path, servers);
  // From a search that none fits, to all.
  await page.getByRole('searchbox').fill('none of them');
  const all = await page.getByRole('button', { name: 'Show all servers' }).elementHandle();
  await wait(500);
  const events = await traced(devtools, async () => {
    await page.evaluate((button) => {
      performance.mark('update');
      button.click();
    }, all);
    await wait(2 * WINDOW_MS);
  });
  await page.close();
  const [{ total, longest }] = afterMarks(events, 'update', WINDOW_MS).updates;
  return { total, longest };
}

/** Memory after garbage collection in MiB, and nodes, at the beginning and at each checkpoint of a replayed hour (MESSAGES: fewer). */
export async function memory({ open, origin }, path, servers) {
  const { page, devtools, world } = await open(path, servers);
  await page.route(`${origin}/bench-world.mjs`, async (route) =>
    route.fulfill({
      contentType: 'text/javascript',
      body: await readFile(new URL('./world.mjs', import.meta.url), 'utf8'),
    }),
  );
  await page.evaluate(
    async ({ count, now }) => {
      const { World } = await import('/bench-world.mjs');
      window.world = new World({ count, now });
    },
    { count: servers, now: world.now },
  );
  await devtools.send('Performance.enable');
  const steps = [];
  for (let checkpoint = 0; checkpoint <= CHECKPOINTS; checkpoint += 1) {
    if (checkpoint > 0) {
      await page.evaluate(async (count) => {
        for (let index = 0; index < count; index += 1) {
          window.deliver(JSON.stringify(window.world.step()));
          await new Promise((done) => requestAnimationFrame(done));
        }
      }, MESSAGES / CHECKPOINTS);
    }
    // What nobody holds any more goes in the second round.
    for (let round = 0; round < 2; round += 1) await devtools.send('HeapProfiler.collectGarbage');
    const { metrics } = await devtools.send('Performance.getMetrics');
    const { JSHeapUsedSize, Nodes } = Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
    steps.push({ mebibytes: JSHeapUsedSize / 2 ** 20, nodes: Nodes });
  }
  await page.close();
  return steps;
}

export function told(path, { total, script, style, layout, paint, rest, middle, most, otherwise, count }) {
  const parts = Object.entries({ script, style, layout, paint, rest }).map(([name, ms]) => `${name} ${rounded(ms)}`);
  return (
    `${path.padEnd(18)} ${rounded(total)} ms (${parts.join(', ')}), median ${rounded(middle)}, 95 % under ${rounded(most)},` +
    ` otherwise ${rounded(otherwise)} a second; ${count} updates`
  );
}

async function write(path, servers, { total }) {
  const row = servers === ROWS_SERVERS && ROWS[path];
  if (!row || !process.env.BENCH_FIGURES) return;
  const line = { row, value: total, unit: 'ms', better: 'lower' };
  await appendFile(process.env.BENCH_FIGURES, `${JSON.stringify(line)}\n`);
}

/** In turns, so that what else the machine does meets both. */
async function compare(dists, rounds) {
  const servers = ROWS_SERVERS;
  const stages = [];
  for (const dist of dists) stages.push({ dist, here: await stage(resolve(dist)), totals: new Map() });
  for (let round = 1; round <= rounds; round += 1) {
    for (const path of ['/?view=cards', '/?view=table', '/wall']) {
      for (const { dist, here, totals } of stages) {
        const found = await updateTime(here, path, servers);
        totals.set(path, [...(totals.get(path) ?? []), found.total]);
        console.log(`${round} ${dist} ${told(path, found)}`);
      }
    }
  }
  for (const { dist, here, totals } of stages) {
    for (const [path, all] of totals)
      console.log(`${dist} ${path.padEnd(18)} median of ${rounds}: ${rounded(median(all))} ms`);
    await here.close();
  }
}

async function main() {
  if (process.argv[2] === 'compare') return compare(process.argv.slice(3, 5), Number(process.argv[5] ?? 5));
  const servers = Number(process.argv[2] ?? 200);
  const what = process.argv[3] ?? 'all';
  const paths = process.argv[4]?.split(',') ?? ['/?view=cards', '/?view=cards&sort=cpu', '/?view=table', '/wall'];
  const here = await stage(process.env.DIST);
  console.log(`${servers} servers, all of them changed by each update:`);
  try {
    if (what === 'all' || what === 'time') {
      for (const path of paths) {
        const found = await updateTime(here, path, servers);
        console.log(told(path, found));
        await write(path, servers, found);
      }
    }
    if (what === 'all' || what === 'first') {
      for (const path of paths.filter((path) => path.startsWith('/?'))) {
        const { total, longest } = await render(here, path, servers);
        console.log(`${path.padEnd(18)} built in ${rounded(total)} ms (longest task ${rounded(longest)})`);
      }
    }
    if (what === 'all' || what === 'memory') {
      for (const path of paths.filter((path) => !path.includes('sort'))) {
        const steps = await memory(here, path, servers);
        console.log(
          `${path.padEnd(18)} ${MESSAGES} messages: ${steps.map(({ mebibytes, nodes }) => `${rounded(mebibytes)} MiB (${nodes} nodes)`).join(', ')}`,
        );
      }
    }
  } finally {
    await here.close();
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main();
