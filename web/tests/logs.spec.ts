import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import type { Site } from './support/site.ts';
import { enter, expect, tab, test, type Control } from './support/test.ts';
import * as t from './support/texts.ts';

/** A log file that the agent may read, opened in the page. */
async function follow(page: Page, control: Control, site: Site, ...lines: string[]): Promise<string> {
  const file = join(control.logs, `${site.unique('app')}.log`);
  writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
  await enter(page, control.account, `/servers/${control.server.id}`);
  await tab(page, t.logs.title()).click();
  await page.getByLabel(t.logs.log(), { exact: true }).selectOption({ label: t.logs.file() });
  await page.getByLabel(t.logs.path()).fill(file);
  await page.getByRole('button', { name: t.logs.show(), exact: true }).click();
  await expect(page.getByText(t.liveLog.live(), { exact: true })).toBeVisible();
  return file;
}

const linesOf = (page: Page) => page.getByRole('log', { name: t.logs.lines() });

test('a line that is written after the log was opened appears', async ({ page, control, site }) => {
  const file = await follow(page, control, site, 'from before');
  await expect(linesOf(page)).toContainText('from before');

  appendFileSync(file, 'and from now\n');

  await expect(linesOf(page)).toContainText('and from now');
});

test("a container's log is followed, and its address shared", async ({ page, control, site, visit }) => {
  const name = site.unique(`talking-${process.pid}`);
  const id = await control.docker.run(name, 'echo hello', 'echo woe >&2');
  await enter(page, control.account, `/servers/${control.server.id}/logs`);
  await page.getByLabel(t.logs.log(), { exact: true }).selectOption({ label: name });
  await expect(linesOf(page)).toContainText('hello');
  await expect(linesOf(page)).toContainText('woe');

  await control.docker.write(id, 'later on');

  await expect(linesOf(page)).toContainText('later on');
  const other = await visit(control.account, page.url());
  await expect(linesOf(other)).toContainText('later on');
});

test('what comes while the log is paused is counted, and shown when it continues', async ({ page, control, site }) => {
  const file = await follow(page, control, site, 'one');
  await expect(linesOf(page)).toContainText('one');
  await page.getByRole('button', { name: t.liveLog.pause() }).click();

  appendFileSync(file, 'two\nthree\n');

  const resume = page.getByRole('button', { name: t.liveLog.resumeNew({ count: 2 }) });
  await expect(resume).toBeVisible();
  await expect(linesOf(page)).not.toContainText('two');
  await resume.click();
  await expect(linesOf(page)).toContainText('three');
  await expect(page.getByText(t.liveLog.live(), { exact: true })).toBeVisible();
});

test('what is searched for is marked, counted, and can be all that is shown', async ({ page, control, site }) => {
  await follow(page, control, site, 'error: disk 7 is full', 'all is well', 'error: disk 9 is full', 'a.b');
  await expect(linesOf(page)).toContainText('a.b');

  const find = page.getByRole('searchbox', { name: t.liveLog.find() });
  await find.fill('disk');
  await expect(page.getByText(t.liveLog.lines({ count: 2 }), { exact: true })).toBeVisible();
  const marks = linesOf(page).locator('.found');
  await expect(marks).toHaveText(['disk', 'disk']);
  await find.press('Enter');
  await expect(
    page
      .getByText(t.liveLog.placeOf({ place: 1, count: 2 }))
      .or(page.getByText(t.liveLog.placeOf({ place: 2, count: 2 }))),
  ).toBeVisible();

  await page.getByRole('button', { name: t.liveLog.only() }).click();
  await expect(linesOf(page)).not.toContainText('all is well');
  await page.getByRole('button', { name: t.liveLog.regex() }).click();
  await find.fill('disk [89]');
  await expect(marks).toHaveText(['disk 9']);
  await find.fill('disk [');
  await expect(find).toHaveAttribute('aria-invalid', 'true');
  await expect(page.getByRole('alert')).toBeVisible();
});

test('a search that would take for ever does not freeze the page', async ({ page, control, site }) => {
  await follow(page, control, site, `${'a'.repeat(60)}b`, 'calm');
  await expect(linesOf(page)).toContainText('calm');
  await page.getByRole('button', { name: t.liveLog.regex() }).click();

  const find = page.getByRole('searchbox', { name: t.liveLog.find() });
  await find.fill('^(a+)+$');
  // The page still responds.
  await find.fill('calm');

  await expect(linesOf(page).locator('.found')).toHaveText(['calm']);
});

test('twenty thousand lines at once are all there, and only those in sight are in the page', async ({
  page,
  control,
  site,
}) => {
  const file = await follow(page, control, site, 'first');
  await expect(linesOf(page)).toContainText('first');

  appendFileSync(file, Array.from({ length: 20_000 }, (_, index) => `line ${index}\n`).join(''));

  // The page reports the lines that a slow reader missed, and never leaves them out in silence.
  await expect(linesOf(page)).toContainText('line 19999');
  expect(await linesOf(page).locator('.line').count()).toBeLessThan(500);
  await linesOf(page).press('Home');
  await expect(linesOf(page)).toContainText(
    new RegExp(`first|${t.liveLog.droppedHere({ count: 2 }).replace('2', '.*')}`),
  );
});

test('a file that the agent may not read is refused with the way to allow it', async ({ page, control }) => {
  await enter(page, control.account, `/servers/${control.server.id}/logs?source=file&path=/etc/shadow`);

  await expect(page.getByLabel(t.allow.line())).toHaveText(/ -- --logs on --log-path \/etc\/shadow$/);
  await expect(page.getByRole('main')).not.toContainText('root:');
});

test('a log that was refused opens when its agent is back and allows it', async ({ signedIn: page, account, site }) => {
  const file = join(site.directory, `${site.unique('refused')}.log`);
  writeFileSync(file, 'at last\n');
  const server = await site.server(account);
  const agent = await site.agent(account, server, '--logs', 'on');
  await page.goto(`/servers/${server.id}/logs?source=file&path=${encodeURIComponent(file)}`);
  await expect(page.getByLabel(t.allow.line())).toContainText(` -- --logs on --log-path ${file}`);

  await agent.end();
  await site.agent(account, server, '--logs', 'on', '--log-path', file);

  await expect(linesOf(page)).toContainText('at last');
  await expect(page.getByLabel(t.allow.line())).toBeHidden();
});

test('where the agent reads no logs, the page says who decides that and how', async ({
  signedIn: page,
  account,
  site,
}) => {
  const server = await site.server(account);
  await site.agent(account, server);

  await page.goto(`/servers/${server.id}/logs`);

  await expect(page.getByRole('heading', { name: t.unable.noLogs() })).toBeVisible();
  await expect(page.getByLabel(t.allow.line())).toHaveText(
    `curl -fsSL ${site.origin}/install.sh | sudo sh -s -- --logs on`,
  );
});

test('the past is searched on the server', async ({ page, control, site }) => {
  await follow(page, control, site, 'needle 1', 'hay', 'needle 2');
  await page.getByRole('button', { name: t.logs.onServer() }).click();

  await page.getByLabel(t.logs.text()).fill('needle');
  await page.getByRole('button', { name: t.logs.search(), exact: true }).click();

  const found = page.getByRole('log', { name: t.logs.found() });
  await expect(found).toContainText('needle 2');
  await expect(found).not.toContainText('hay');
  await page.reload();
  await expect(found).toContainText('needle 1');
});
