// What a first look costs: bytes of the first load, and the time to the first live number, signed in by the cookie.
import { chromiumHere, wait } from './stage.mjs';

const TIMES = 15;
/** So long after the first number nothing more belongs to the first load. */
const QUIET_MS = 1500;

/** Tells when the first CPU number is on the screen: after the frame that has it. Runs in the page. */
function watchForNumber() {
  window.firstNumber = new Promise((done) => {
    const look = new MutationObserver(() => {
      const value = document.querySelector('main article .shares b, main [role="gridcell"] .value');
      if (!value || !/\d/.test(value.textContent)) return;
      look.disconnect();
      requestAnimationFrame(() => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => done(performance.now());
        port2.postMessage(null);
      });
    });
    look.observe(document, { subtree: true, childList: true, characterData: true });
  });
}

/** Loads the fleet page repeatedly. Returns the milliseconds of each load, and the bytes as they came over the wire. */
export async function load(url, username, password, times = TIMES) {
  const browser = await chromiumHere();
  try {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
    const answer = await context.request.post(`${url}/api/v1/auth/login`, {
      form: { username, password },
      headers: { 'X-Refresh-Cookie': '1' },
    });
    if (!answer.ok()) throw new Error(`cannot sign in: ${answer.status()} ${await answer.text()}`);
    await context.addInitScript(watchForNumber);
    const bytes = { files: 0, api: 0, requests: 0 };

    const once = async (isCold, isCounted) => {
      const page = await context.newPage();
      const devtools = await context.newCDPSession(page);
      await devtools.send('Network.enable');
      if (isCold) await devtools.send('Network.clearBrowserCache');
      const paths = new Map();
      devtools.on('Network.responseReceived', ({ requestId, response }) => paths.set(requestId, response.url));
      devtools.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
        if (!isCounted || !paths.has(requestId)) return;
        const isApi = new URL(paths.get(requestId)).pathname.startsWith('/api/');
        bytes[isApi ? 'api' : 'files'] += encodedDataLength;
        bytes.requests += 1;
      });
      await page.goto(url);
      const ms = await page.evaluate(() => window.firstNumber);
      if (isCounted) await wait(QUIET_MS);
      await page.close();
      return ms;
    };

    await once(true, true);
    const cold = [];
    const warm = [];
    for (let index = 0; index < times; index += 1) {
      cold.push(await once(true, false));
      warm.push(await once(false, false));
    }
    return { bytes, cold, warm };
  } finally {
    await browser.close();
  }
}
