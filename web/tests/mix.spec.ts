// Logs of several containers and servers, read together.
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { enter, expect, navigation, test } from './support/test.ts';
import * as t from './support/texts.ts';

const linesOf = (page: Page) => page.getByRole('log', { name: t.mix.lines() });

function at(second: number, text: string): string {
  return `2026-11-24T03:12:${String(second).padStart(2, '0')}Z ${text}\n`;
}

async function textsOf(page: Page): Promise<string[]> {
  return linesOf(page).locator('.message').allInnerTexts();
}

test('two logs stand in the order of their time, from before and as they are written', async ({
  page,
  control,
  site,
}) => {
  const [one, other] = [
    join(control.logs, `${site.unique('one')}.log`),
    join(control.logs, `${site.unique('other')}.log`),
  ];
  writeFileSync(one, at(1, 'first') + at(3, 'third'));
  writeFileSync(other, at(2, 'second') + at(4, 'ERROR fourth'));
  const logs = new URLSearchParams([one, other].map((path) => ['log', `${control.server.id}:file:${path}`]));

  await page.clock.install();
  // Not every browser tells the test what comes on a socket.
  await page.addInitScript(() => {
    const heard: string[] = [];
    const Plain = WebSocket;
    class Heard extends Plain {
      constructor(...given: ConstructorParameters<typeof WebSocket>) {
        super(...given);
        this.addEventListener('message', ({ data }) => void heard.push(String(data)));
      }
    }
    Object.assign(window, { heard, WebSocket: Heard });
  });
  const hasHeard = (text: string) =>
    page.evaluate((part) => (window as unknown as { heard: string[] }).heard.some((one) => one.includes(part)), text);
  await enter(page, control.account, `/logs?${logs}`);

  await expect(linesOf(page)).toContainText('fourth');
  await expect
    .poll(async () => (await textsOf(page)).map((text) => text.split(' ').at(-1)))
    .toEqual(['first', 'second', 'third', 'fourth']);
  const shown = page.getByRole('list', { name: t.mix.shown() });
  await expect(shown.getByRole('listitem')).toHaveCount(2);
  // What is younger waits for a moment: no time passes in the page until both are there.
  await page.clock.pauseAt(Date.now() + 60_000);
  appendFileSync(other, at(9, 'younger'));
  appendFileSync(one, at(8, 'older'));
  for (const line of ['younger', 'older']) await expect.poll(() => hasHeard(line)).toBe(true);
  await page.clock.resume();
  await expect(linesOf(page)).toContainText('younger');
  await expect
    .poll(async () => (await textsOf(page)).slice(-2).map((text) => text.split(' ').at(-1)))
    .toEqual(['older', 'younger']);
});

test('the lines of one log can be hidden, and a log taken away; the address says which there are', async ({
  page,
  control,
  site,
}) => {
  const names = [site.unique('keep'), site.unique('leave')];
  // Of one there is more than is in sight.
  const many = Array.from({ length: 200 }, (_, index) => at(1, `from ${names[0]}. ${index}`)).join('');
  writeFileSync(join(control.logs, `${names[0]}.log`), many);
  writeFileSync(join(control.logs, `${names[1]}.log`), at(2, `from ${names[1]}.`));
  const keys = names.map((name) => ['log', `${control.server.id}:file:${join(control.logs, `${name}.log`)}`]);
  await enter(page, control.account, `/logs?${new URLSearchParams(keys)}`);
  const [keep, leave] = names.map((name) => `from ${name}.`) as [string, string];
  await expect(linesOf(page)).toContainText(keep);
  await expect(linesOf(page)).toContainText(leave);

  await page.getByRole('button', { name: new RegExp(`^${names[1]}`), pressed: true }).click();
  await expect(linesOf(page)).not.toContainText(leave);
  await page.getByRole('button', { name: new RegExp(`^${names[1]}`), pressed: false }).click();
  await expect(linesOf(page)).toContainText(leave);
  const read = linesOf(page)
    .locator('.message')
    .filter({ hasText: /\. 103\b/ });
  await linesOf(page).evaluate((box) => (box.scrollTop = box.scrollHeight / 2));
  await expect(read).toBeInViewport();
  await page.getByRole('button', { name: t.mix.remove({ name: `${names[1]}.log` }) }).click();

  const pane = page.getByRole('region', { name: t.mix.title(), exact: true });
  await expect(pane.getByText(t.mix.lineCount({ count: 200 }), { exact: true })).toBeVisible();
  await expect(linesOf(page)).not.toContainText(leave);
  await expect(linesOf(page)).toContainText(keep);
  // The lines that somebody reads stay in sight.
  await expect(read).toBeInViewport();
  await expect(page).not.toHaveURL(new RegExp(names[1] ?? ''));
});

test('logs are chosen from a list: a server, then logs of it', async ({ page, control, site }) => {
  const name = site.unique(`mixed-${process.pid}`);
  await control.docker.run(name, 'echo from the container');
  await enter(page, control.account);
  await navigation(page).getByRole('link', { name: t.app.logs() }).click();

  const dialog = page.getByRole('dialog');
  await dialog.getByRole('option', { name: /^control/ }).click();
  await dialog.getByRole('option', { name }).click();
  await expect(dialog.getByRole('option', { name })).toHaveAttribute('aria-selected', 'true');
  await dialog.getByRole('button', { name: t.mix.done() }).click();

  await expect(linesOf(page)).toContainText('from the container');
});

test('a log that cannot be read says so, beside those that can', async ({ page, control, site }) => {
  const file = join(control.logs, `${site.unique('good')}.log`);
  writeFileSync(file, at(1, 'all is well'));
  const logs = new URLSearchParams([
    ['log', `${control.server.id}:file:${file}`],
    ['log', `${control.server.id}:file:/etc/shadow`],
  ]);

  await enter(page, control.account, `/logs?${logs}`);

  await expect(linesOf(page)).toContainText('all is well');
  await expect(page.getByRole('alert')).toContainText('--log-path');
});

test('several logs are searched on their servers at once', async ({ page, control, site }) => {
  const files = ['a', 'b'].map((name) => join(control.logs, `${site.unique(name)}.log`)) as [string, string];
  writeFileSync(files[0], at(1, 'needle one') + at(2, 'hay'));
  writeFileSync(files[1], at(3, 'needle three') + at(2, 'needle two'));
  const logs = new URLSearchParams(files.map((path) => ['log', `${control.server.id}:file:${path}`]));
  await enter(page, control.account, `/logs?${logs}`);
  await page.getByRole('searchbox', { name: t.liveLog.find() }).fill('needle');

  await page.getByRole('button', { name: t.mix.onServers() }).click();

  const found = page.getByRole('log', { name: t.mix.found() });
  await expect(found).toContainText('needle three');
  await expect(found).not.toContainText('hay');
  await expect(found.locator('.message').first()).toContainText('needle one');
  await page.reload();
  await expect(found).toContainText('needle one');
});
