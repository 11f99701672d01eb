// All figures of the interface: `npm run build && node bench/run.mjs URL USER PASSWORD`.
//
// URL is a running service (a release build) with some servers, best on this machine: bytes and time of the first load are
// of that. The others are of a made-up fleet: see fleet.mjs.
import { memory, median, render, rounded, updateTime } from './fleet.mjs';
import { load } from './load.mjs';
import { stage } from './stage.mjs';

const SERVERS = 200;
const MANY = 1000;

const [url, username, password] = process.argv.slice(2);
if (!password) {
  console.error('node bench/run.mjs URL USER PASSWORD');
  process.exit(2);
}

const row = (figure, aim, measured) => console.log(`| ${figure} | ${aim} | ${measured} |`);
const kibibytes = (bytes) => `${rounded(bytes / 1024)} KiB`;
const slowest = (values) => Math.round(Math.max(...values));

console.log('| figure | aim | measured |\n|---|---|---|');
const { bytes, cold, warm } = await load(url.replace(/\/$/, ''), username, password);
row(
  'bytes of the first load, compressed',
  '≤ 70 KiB',
  `${kibibytes(bytes.files)} (${bytes.requests} requests; what the API says ${kibibytes(bytes.api)})`,
);
row('time to the first live number, empty cache', 'shown', `${Math.round(median(cold))} ms (slowest ${slowest(cold)})`);
row(
  'time to the first live number, from the cache',
  'shown',
  `${Math.round(median(warm))} ms (slowest ${slowest(warm)})`,
);

const here = await stage();
const aim = { '/?view=cards': '≤ 4 ms', '/?view=table': '≤ 4 ms', '/wall': 'shown' };
const names = { '/?view=cards': 'cards', '/?view=table': 'table', '/wall': 'wall' };
try {
  for (const [path, name] of Object.entries(names)) {
    const { total, script, style, layout, paint, rest, most, otherwise } = await updateTime(here, path, SERVERS);
    const parts = Object.entries({ script, style, layout, paint, rest }).map(([kind, ms]) => `${kind} ${rounded(ms)}`);
    row(
      `main thread for an update of ${SERVERS} servers, ${name}`,
      aim[path],
      `${rounded(total)} ms (${parts.join(', ')}; 95 % under ${rounded(most)}; a second has ${rounded(otherwise)} besides)`,
    );
  }
  for (const path of ['/?view=cards', '/?view=table']) {
    const { total } = await updateTime(here, path, MANY, { updates: 20 });
    row(`main thread for an update of ${MANY} servers, ${names[path]}`, 'shown', `${rounded(total)} ms`);
    const { total: built, longest } = await render(here, path, MANY);
    row(
      `main thread to show ${MANY} servers, ${names[path]}`,
      '≤ 200 ms',
      `${Math.round(built)} ms (longest task ${Math.round(longest)})`,
    );
  }
  for (const [path, name] of Object.entries(names)) {
    const steps = await memory(here, path, SERVERS);
    const [begin, end] = [steps[0], steps.at(-1)];
    row(
      `memory after an hour replayed, ${name}`,
      'flat',
      `${steps.map(({ mebibytes }) => rounded(mebibytes)).join(', ')} MiB; ${begin.nodes} nodes, then ${end.nodes}`,
    );
  }
} finally {
  await here.close();
}
