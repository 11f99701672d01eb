// The built interface in a real Chromium, with a made-up fleet in the place of the service.
import { createHash } from 'node:crypto';
import { chromium } from '@playwright/test';
import { preview } from 'vite';
import { show, World } from './world.mjs';

const WINDOW = { width: 1440, height: 900 };
/** What a WebSocket server adds to the key that it was given (RFC 6455, 1.3). */
const ACCEPT = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

export const wait = (ms) => new Promise((done) => setTimeout(done, ms));

export function chromiumHere() {
  return chromium.launch({
    executablePath: process.env.SIGNALBOX_CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--enable-precise-memory-info'],
  });
}

/** Marks what comes over the fleet's socket, and tells when the clock of the interface ticks. Runs in the page. */
function watchFleet() {
  window.WebSocket = class extends WebSocket {
    constructor(address, protocols) {
      super(address, protocols);
      if (!address.endsWith('/ws/fleet')) return;
      this.addEventListener('message', () => performance.mark('update'));
      window.deliver = (text) => this.onmessage({ data: text });
    }
  };
  const { setInterval } = window;
  window.setInterval = (act, ms, ...others) => {
    if (ms === 1000) window.tickedAt ??= Date.now();
    return setInterval(act, ms, ...others);
  };
}

/** Opens pages of the interface that was built into `dist`, on a fleet. `close` it in the end. */
export async function stage(dist = 'dist') {
  const server = await preview({
    build: { outDir: dist },
    preview: { port: 0, host: '127.0.0.1', proxy: {} },
    logLevel: 'warn',
  });
  const origin = `http://127.0.0.1:${server.httpServer.address().port}`;
  const sockets = new Set();
  let onFleet = () => {};
  server.httpServer.on('upgrade', (request, socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => {});
    const accept = createHash('sha1')
      .update(request.headers['sec-websocket-key'] + ACCEPT)
      .digest('base64');
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
        `Sec-WebSocket-Protocol: bearer\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
    if (request.url.endsWith('/ws/fleet')) onFleet((message) => socket.write(frame(JSON.stringify(message))));
  });
  const browser = await chromiumHere();

  /** A page that shows `count` servers, and is quiet. */
  async function open(path, count, options = {}) {
    const page = await browser.newPage({ viewport: WINDOW, ...options });
    page.on('pageerror', (error) => console.error('the page failed:', error.message));
    const world = new World({ count, ...options.world });
    await show(page, world, { origin, hasSockets: false });
    await page.addInitScript(watchFleet);
    const opened = new Promise((done) => (onFleet = done));
    await page.goto(origin + path);
    const send = await opened;
    send(world.first());
    // A wall of thousands has squares in the place of numbers.
    await page
      .getByText(/^\d+ %$/)
      .or(page.locator('main canvas'))
      .first()
      .waitFor();
    await wait(1500);
    const devtools = await page.context().newCDPSession(page);
    return { page, world, devtools, send };
  }

  async function close() {
    await browser.close();
    for (const socket of sockets) socket.destroy();
    await server.close();
  }

  return { open, close, origin, browser };
}

/** A text message as a server sends it. */
function frame(text) {
  const body = Buffer.from(text);
  const head = Buffer.alloc(body.length < 126 ? 2 : body.length < 65_536 ? 4 : 10);
  head[0] = 0x81;
  head[1] = head.length === 2 ? body.length : head.length === 4 ? 126 : 127;
  if (head.length === 4) head.writeUInt16BE(body.length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(body.length), 2);
  return Buffer.concat([head, body]);
}
