// Draws the pictures that must be PNG from public/favicon.svg: `node build/icons.mjs`, after the SVG has changed.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from '@playwright/test';

const PUBLIC = join(dirname(dirname(fileURLToPath(import.meta.url))), 'public');
/** Systems cut a maskable icon to a circle of this share of its width at least. */
const SAFE = 0.8;

const rounded = readFileSync(join(PUBLIC, 'favicon.svg'), 'utf8');
/** Up to the edges: the system that shows it cuts its corners. @param {number} share of the width that the sign takes */
const whole = (share) =>
  rounded
    .replace(' rx="8"', '')
    .replace('<path', `<path transform="translate(16 16) scale(${share}) translate(-16 -16)"`);

const browser = await chromium.launch({
  executablePath: process.env.SIGNALBOX_CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu'],
});

/** @param {string} svg @param {number} size @returns {Promise<Buffer>} */
async function draw(svg, size) {
  const page = await browser.newPage({ viewport: { width: size, height: size } });
  const sized = svg.replace('<svg', `<svg width="${size}" height="${size}"`);
  await page.setContent(`<style>body { margin: 0 } svg { display: block }</style>${sized}`);
  const picture = await page.screenshot({ omitBackground: true });
  await page.close();
  return picture;
}

/** An icon file that holds one PNG. @param {Buffer} png @param {number} size */
function ico(png, size) {
  const head = Buffer.alloc(22);
  head.writeUInt16LE(1, 2);
  head.writeUInt16LE(1, 4);
  head.writeUInt8(size, 6);
  head.writeUInt8(size, 7);
  head.writeUInt16LE(1, 10);
  head.writeUInt16LE(32, 12);
  head.writeUInt32LE(png.length, 14);
  head.writeUInt32LE(head.length, 18);
  return Buffer.concat([head, png]);
}

try {
  const files = {
    'icon-192.png': await draw(rounded, 192),
    'icon-512.png': await draw(rounded, 512),
    'icon-maskable-512.png': await draw(whole(SAFE), 512),
    'apple-touch-icon.png': await draw(whole(SAFE + 0.1), 180),
    'favicon.ico': ico(await draw(rounded, 32), 32),
  };
  for (const [name, picture] of Object.entries(files)) writeFileSync(join(PUBLIC, name), picture);
} finally {
  await browser.close();
}
