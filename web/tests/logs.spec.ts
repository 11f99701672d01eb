import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { chooseLog } from './support/logs.ts';
import type { Site } from './support/site.ts';
import { enter, expect, tab, test, told, type Control } from './support/test.ts';
import * as t from './support/texts.ts';

/** A log file that the agent may read, opened in the page. */
async function follow(page: Page, control: Control, site: Site, ...lines: string[]): Promise<string> {
  const file = join(control.logs, `${site.unique('app')}.log`);
  writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
  await enter(page, control.account, `/servers/${control.server.id}`);
  await tab(page, t.logs.title()).click();
  await chooseLog(page, t.logs.file());
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
  await chooseLog(page, name);
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
  const marks = linesOf(page).locator('.found');
  // The worker is loaded: it begins with the next expression at once.
  await find.fill('calm');
  await expect(marks).toHaveText(['calm']);
  await find.fill('^(a+)+$');
  // It is at work, or has given up.
  const none = page.getByText(t.liveLog.lines({ count: 0 }), { exact: true });
  await expect(none.or(page.getByRole('alert'))).toBeVisible();
  await expect(marks).toHaveCount(0);
  // The page still responds.
  await find.fill('calm');

  await expect(marks).toHaveText(['calm']);
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

test('what was typed while following is searched for on the server, and taken back', async ({
  page,
  control,
  site,
}) => {
  await follow(page, control, site, 'GET /a status=200', 'GET /b status=500', 'GET /c status=503');
  await page.getByRole('button', { name: t.liveLog.regex() }).click();
  await page.getByRole('searchbox', { name: t.liveLog.find() }).fill('status=5\\d\\d');

  await page.getByRole('button', { name: t.logs.onServer() }).click();

  const found = page.getByRole('log', { name: t.logs.found() });
  await expect(found).toContainText('status=500');
  await expect(found).toContainText('status=503');
  await expect(found).not.toContainText('status=200');
  await expect(page.getByLabel(t.logs.text())).toHaveValue('status=5\\d\\d');
  await expect(page.getByRole('checkbox', { name: t.logs.regex() })).toBeChecked();
  await page.getByRole('button', { name: t.logs.follow() }).click();
  await expect(page.getByRole('searchbox', { name: t.liveLog.find() })).toHaveValue('status=5\\d\\d');
});

test('levels of plain lines, JSON and logfmt are seen, counted and narrow the lines; the address says it', async ({
  page,
  control,
  site,
}) => {
  await follow(
    page,
    control,
    site,
    '2026-11-24T03:12:00Z ERROR plain one',
    '{"level":"error","msg":"json one","order":17}',
    'level=warn msg="logfmt one" took=3s',
    '2026/11/24 03:12:00 [error] 31#31: nginx one',
    'without one',
  );
  await expect(linesOf(page)).toContainText('without one');
  const error = page.getByRole('button', { name: new RegExp(`^${t.log.level({ level: 'error' })} 3$`) });
  await expect(error).toBeVisible();

  await error.click();

  await expect(linesOf(page).locator('.line')).toHaveCount(3);
  await expect(linesOf(page)).not.toContainText('logfmt one');
  await expect(page.getByText(t.liveLog.shownOf({ shown: 3, count: 5 }))).toBeVisible();
  await expect(page).toHaveURL(/level=error/);
  await page.reload();
  await expect(linesOf(page).locator('.line')).toHaveCount(3);
  await expect(error).toHaveAttribute('aria-pressed', 'true');
});

test('a line of JSON is its message, and opens into its fields', async ({ page, control, site }) => {
  const json = { level: 'info', msg: 'order paid', http: { status: 200 }, order: 17, evil: '<img src=x>' };
  await follow(page, control, site, JSON.stringify(json), 'plain');
  const line = linesOf(page).locator('.line').first();
  await expect(line).toContainText('order paid  http.status=200');
  await expect(line).not.toContainText('"msg"');

  await line.getByText('order paid', { exact: true }).click();

  const details = linesOf(page).getByRole('group', { name: t.log.details() });
  await expect(details.getByRole('row', { name: /http\.status/ })).toContainText('200');
  await expect(details.getByRole('row', { name: /evil/ })).toContainText('<img src=x>');
  await page.getByRole('button', { name: t.liveLog.format(), exact: true }).click();
  await expect(line).toContainText('"msg"');
});

test('a line that was opened stays while others come, and the end is followed again once it is closed', async ({
  page,
  control,
  site,
}) => {
  const json = (order: string) => JSON.stringify({ level: 'info', msg: `order ${order}`, http: { status: 200 } });
  const many = (what: string) => Array.from({ length: 100 }, (_, index) => `${what} ${index}.`);
  const file = await follow(page, control, site, ...many('before'), json('one'));
  const write = (lines: string[]) => appendFileSync(file, lines.map((line) => `${line}\n`).join(''));
  const details = linesOf(page).getByRole('group', { name: t.log.details() });
  const copy = details.getByRole('button', { name: t.log.copyLine() });
  const toEnd = page.getByRole('button', { name: t.log.toEnd() });

  await linesOf(page).getByText('order one', { exact: true }).click();
  // The line was the last one: what it consists of is in sight, too.
  await expect(copy).toBeInViewport();
  await details.getByRole('button', { name: t.log.closeDetails(), exact: true }).click();
  await expect(details).toBeHidden();
  write([...many('between'), json('two')]);
  await linesOf(page).getByText('order two', { exact: true }).click();
  await copy.focus();

  write(many('after'));

  await expect(page.getByText(t.liveLog.lines({ count: 302 }), { exact: true })).toBeVisible();
  await expect(toEnd).toBeVisible();
  await expect(copy).toBeFocused();
  await expect(copy).toBeInViewport();
  await toEnd.click();
  await expect(linesOf(page)).toContainText('after 99.');
  write(['the last one']);
  await expect(linesOf(page)).toContainText('the last one');
});

test('what is found in a field that is not shown is marked in the line as it was written', async ({
  page,
  control,
  site,
}) => {
  const deep = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`field${index}`, `value${index}`]));
  await follow(page, control, site, JSON.stringify({ msg: 'many', ...deep }));
  await expect(linesOf(page)).toContainText('many');

  await page.getByRole('searchbox', { name: t.liveLog.find() }).fill('value19');

  await expect(linesOf(page).locator('.found')).toHaveText(['value19']);
});

test('a stack trace is folded, opens, and its lines have its level', async ({ page, control, site }) => {
  const trace = Array.from({ length: 12 }, (_, index) => `\tat com.example.Frame${index}`);
  await follow(page, control, site, 'ERROR boom', ...trace, 'INFO next');
  await expect(linesOf(page)).toContainText('Frame2');
  await expect(linesOf(page)).not.toContainText('Frame3');

  await linesOf(page)
    .getByRole('button', { name: t.log.unfold({ count: 9 }) })
    .click();

  await expect(linesOf(page)).toContainText('Frame11');
  await linesOf(page).getByRole('button', { name: t.log.fold() }).click();
  await expect(linesOf(page)).not.toContainText('Frame11');
});

test('keys move from line to line, open one, copy it and go to what was found', async ({
  page,
  context,
  control,
  site,
}) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await follow(page, control, site, 'one', '{"msg":"two","n":2}', 'three two', 'four');
  await expect(linesOf(page)).toContainText('four');
  await page.keyboard.press('/');
  await page.keyboard.type('two');
  // Two lines have its first letter, too, which is searched for at once.
  await expect(linesOf(page).locator('.found')).toHaveText(['two', 'two']);
  await linesOf(page).focus();

  await page.keyboard.press('Home');
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await expect(linesOf(page).getByRole('group', { name: t.log.details() })).toBeVisible();
  await page.keyboard.press('Enter');
  await expect(linesOf(page).getByRole('group', { name: t.log.details() })).toBeHidden();
  await page.keyboard.press('n');
  await page.keyboard.press('n');
  await expect(linesOf(page).locator('.current')).toContainText('three two');
  const copied = told(page, t.log.copied({ count: 1 }));
  await page.keyboard.press('c');
  await copied;
  await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe('three two');
});

test('a line leads to the charts around it, and to all that happened then', async ({ page, control, site }) => {
  await follow(page, control, site, '2026-11-24T03:12:00Z ERROR it broke');
  const line = linesOf(page).locator('.line').first();
  await line.hover();
  await line.getByRole('button', { name: t.log.details() }).click();

  const details = linesOf(page).getByRole('group', { name: t.log.details() });

  await expect(details.getByRole('link', { name: t.log.charts() })).toHaveAttribute(
    'href',
    `/servers/${control.server.id}?from=2026-11-24T03%3A07%3A00Z&to=2026-11-24T03%3A17%3A00Z&at=2026-11-24T03%3A12%3A00Z`,
  );
  await expect(details.getByRole('link', { name: t.log.timeline() })).toHaveAttribute(
    'href',
    `/timeline?server=${control.server.id}&at=2026-11-24T03%3A12%3A00Z`,
  );
});

test('lines over time: keys select a time, which alone is shown then', async ({ page, control, site }) => {
  const at = (minute: number) => `2026-11-24T03:${String(minute).padStart(2, '0')}:00Z INFO minute ${minute}.`;
  await follow(page, control, site, ...Array.from({ length: 30 }, (_, minute) => at(minute)));
  await expect(linesOf(page)).toContainText('minute 29.');
  const bars = page.getByRole('slider', { name: t.log.histogram() });
  // It is drawn now and then while lines come.
  await expect(page.locator('.histogram')).toContainText(/3:(29|30)/);

  await bars.focus();
  await page.keyboard.press('PageDown');
  await page.keyboard.press('Shift+PageUp');
  await page.keyboard.press('Enter');

  await expect(linesOf(page)).not.toContainText('minute 0.');
  await expect(linesOf(page)).toContainText('minute 29.');
  await expect(page).toHaveURL(/from=2026-11-24T03/);
  await page.getByRole('button', { name: t.log.allTimes() }).click();
  await expect(page.getByText(t.liveLog.lines({ count: 30 }), { exact: true })).toBeVisible();
});

test('lines over time: the bar under the pointer stays there while lines come', async ({ page, control, site }) => {
  const at = (minute: number) => `2026-11-24T03:${String(minute).padStart(2, '0')}:00Z INFO minute ${minute}.`;
  const file = await follow(page, control, site, ...Array.from({ length: 30 }, (_, minute) => at(minute)));
  const bars = page.getByRole('slider', { name: t.log.histogram() });
  await expect(page.locator('.histogram')).toContainText(/3:(29|30)/);
  const box = await bars.boundingBox();
  if (!box) throw new Error('there are no bars');
  const x = box.x + box.width / 4;
  await page.mouse.move(x, box.y + box.height / 2);
  const pointed = bars.locator('rect.pointed');
  const told = await bars.getAttribute('aria-valuetext');

  appendFileSync(file, Array.from({ length: 30 }, (_, minute) => `${at(minute + 30)}\n`).join(''));

  // The same place is another time by now.
  await expect(linesOf(page)).toContainText('minute 59.');
  await expect(bars).not.toHaveAttribute('aria-valuetext', told ?? '');
  const isUnderPointer = async () => {
    const now = await pointed.boundingBox();
    return now !== null && now.x - 1 <= x && x <= now.x + now.width + 1;
  };
  await expect.poll(isUnderPointer).toBe(true);
});

test('a log is found in the list by some of its name, by keys alone', async ({ page, control, site }) => {
  // The containers of earlier tests and of other workers are in the list, too.
  const name = `picked-${site.unique(String(process.pid))}-here`;
  await control.docker.run(name, 'echo from the picked one');
  await enter(page, control.account, `/servers/${control.server.id}/logs`);
  await page.getByRole('button', { name: t.logs.logIs({ name: t.logs.systemLog() }) }).press('Enter');
  await expect(page.getByRole('option', { name })).toBeVisible();

  await page.keyboard.type(name.slice(3));
  await expect(page.getByRole('option', { name: t.logs.systemLog() })).toBeHidden();
  await page.keyboard.press('Enter');

  await expect(linesOf(page)).toContainText('from the picked one');
  await expect(page.getByRole('button', { name: t.logs.logIs({ name }) })).toBeFocused();
});
