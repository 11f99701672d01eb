// Commands that recur, with real agents: what is made, what runs, what was signed for it.
import type { Page } from '@playwright/test';
import { answerTo } from './support/answer.ts';
import { expectAccessible } from './support/accessible.ts';
import { enter, expect, test } from './support/test.ts';
import { addAuthenticator, atLocalhost } from './support/authenticator.ts';
import { makeKey } from './support/signing.ts';
import * as t from './support/texts.ts';

/** What a page without a network cannot ask. */
const API = '**/api/v1/**';

const main = (page: Page) => page.getByRole('main');
const press = (page: Page, name: string) => main(page).getByRole('button', { name, exact: true }).click();
const field = (page: Page, name: string) => main(page).getByLabel(name, { exact: true });
const cells = (page: Page) => main(page).getByRole('region', { name: t.schedules.preview() }).getByRole('cell');
/** `* * * * *` is due within a minute; the service looks every few seconds, and the page too. */
const RUN = { timeout: 120_000 };

test.use({ timezoneId: 'Europe/Berlin' });

test('a schedule is made with what is wrong said at its field, changed, paused, and deleted', async ({
  signedIn: page,
  account,
  site,
}) => {
  const server = await site.server(account, 'alpha', ['db']);
  await site.agent(account, server, '--commands', 'on');
  await page.goto('/run');
  await main(page).getByRole('link', { name: t.run.schedules() }).click();
  await expect(page).toHaveURL('/run?view=schedules');
  await expect(page.getByText(t.schedules.none())).toBeVisible();
  await main(page).getByRole('link', { name: t.schedules.add() }).click();

  await press(page, t.schedules.create());
  await expect(field(page, t.schedules.name())).toHaveAccessibleDescription(t.schedules.giveName());
  await expect(field(page, t.schedules.name())).toBeFocused();
  await expect(field(page, t.schedules.command())).toHaveAccessibleDescription(t.schedules.giveCommand());
  await expect(main(page).getByText(t.schedules.pickServers())).toBeVisible();
  await expectAccessible(page);
  const cron = field(page, t.schedules.cron());
  for (const [text, fault] of [
    ['0 3 * *', t.schedules.faultFields()],
    ['0 25 * * *', t.schedules.faultSyntax()],
    ['0 3 31 2 *', t.schedules.faultNever()],
  ] as const) {
    await cron.fill(text);
    await expect(cron).toHaveAccessibleDescription(new RegExp(fault.replaceAll('*', '\\*')));
  }
  await field(page, t.schedules.timeZone()).fill('Mars/Olympus');
  await expect(field(page, t.schedules.timeZone())).toHaveAccessibleDescription(new RegExp(t.schedules.faultZone()));

  await field(page, t.schedules.name()).fill('Nightly backup');
  // A list of servers that cannot be read again takes nothing away from who is writing.
  const lists = '**/api/v1/servers?*';
  await page.route(lists, (route) => route.abort());
  const unread = page.waitForEvent('requestfailed', (request) => request.url().includes('/api/v1/servers?'));
  await site.server(account, 'beta');
  await unread;
  await page.unroute(lists);
  await field(page, t.schedules.command()).fill('backup --all');
  await main(page).getByRole('checkbox', { name: 'alpha' }).check();
  await main(page).getByRole('button', { name: 'Monday to Friday at 09:30' }).click();
  await field(page, t.schedules.timeZone()).fill('America/New_York');
  // Half past nine there is half past three here, but for the weeks in which one has changed its clocks and the other has not.
  await expect(cells(page).nth(0)).toContainText('09:30');
  await expect(cells(page).nth(1)).toContainText(/0[23]:30 PM/);
  // Without a network nothing is saved, and nothing that was written is lost.
  await page.route(API, (route) => route.abort('internetdisconnected'));
  await press(page, t.schedules.create());
  await expect(main(page).getByRole('alert')).toContainText(t.app.failed());
  await expect(field(page, t.schedules.name())).toHaveValue('Nightly backup');
  await expect(field(page, t.schedules.command())).toHaveValue('backup --all');
  await expect(main(page).getByRole('checkbox', { name: 'alpha' })).toBeChecked();
  await expect(cron).toHaveValue('30 9 * * MON-FRI');
  await expect(field(page, t.schedules.timeZone())).toHaveValue('America/New_York');
  await page.unroute(API);
  await press(page, t.schedules.create());

  await expect(page.getByRole('heading', { name: 'Nightly backup' })).toBeVisible();
  await expect(page).toHaveURL(/\?view=schedules&schedule=[0-9a-f-]{36}$/);
  const address = page.url();
  await expect(main(page)).toContainText('Monday to Friday at 09:30');
  await expect(main(page)).toContainText('America/New York');
  await expect(main(page)).toContainText(t.schedules.noRuns());
  await page.reload();
  await expect(page.getByRole('heading', { name: 'Nightly backup' })).toBeVisible();

  await main(page).getByRole('link', { name: t.schedules.edit(), exact: true }).click();
  await expect(field(page, t.schedules.command())).toHaveValue('backup --all');
  await cron.fill('15 4 1 * *');
  const until = main(page).getByRole('textbox', { name: t.schedules.until() });
  await until.fill('2020-01-01 00:00');
  await expect(until).toHaveAccessibleDescription(new RegExp(t.schedules.untilPast()));
  await until.fill('');
  await press(page, t.schedules.save());
  await expect(page).toHaveURL(address);
  await expect(main(page)).toContainText('On day 1 of every month at 04:15');

  await press(page, t.schedules.pause());
  await expect(main(page).getByText(t.schedules.noNext())).toBeVisible();
  await main(page).getByRole('link', { name: t.schedules.title() }).click();
  const row = page.getByRole('list', { name: t.schedules.list() }).getByRole('listitem');
  await expect(row).toContainText(t.schedules.paused());
  const button = (what: string) =>
    row.getByRole('button', { name: t.schedules.actOn({ what, name: 'Nightly backup' }) });
  const act = (what: string) => button(what).click();
  await act(t.schedules.resume());
  await expect(row).not.toContainText(t.schedules.paused());
  await expect(row).toContainText(t.schedules.never());
  const question = page.getByRole('dialog', { name: t.schedules.removeTitle({ name: 'Nightly backup' }) });
  await act(t.schedules.remove());
  await question.getByRole('button', { name: t.app.cancel(), exact: true }).click();
  await expect(question).toBeHidden();
  await expect(button(t.schedules.remove())).toBeFocused();
  await act(t.schedules.remove());
  await question.getByRole('button', { name: t.schedules.remove() }).click();
  await expect(page.getByText(t.schedules.none())).toBeVisible();
  await page.goto(address);
  await expect(page.getByRole('heading', { name: t.schedules.gone() })).toBeVisible();
});

test('a schedule is signed once and runs, and one that fails is an event of its server', async ({
  page,
  account,
  site,
  origins,
}) => {
  test.slow();
  const origin = atLocalhost(site);
  origins.push(origin);
  await addAuthenticator(page);
  await enter(page, account, `${origin}/account/security`);
  const line = await makeKey(page);
  const server = await site.server(account, 'vault');
  site.keepsNoncesSince(server, Date.now() - 3_600_000);
  await site.signedAgent(account, server, 'vault-1', `${line}\n`);
  const plain = await site.server(account, 'plain');
  await site.agent(account, plain, '--commands', 'on');
  const cron = '* * * * *';
  const body = { name: 'Cleaning', server_ids: [plain.id], command: 'exit 3', cron, time_zone: 'Europe/Berlin' };
  await site.call('POST', '/schedules', account.token, body);

  await page.goto(`${origin}/run?view=schedules&new=1`);
  await field(page, t.schedules.name()).fill('Greeting');
  await field(page, t.schedules.command()).fill('echo "hello $((40 + 2))"');
  await main(page).getByRole('checkbox', { name: 'plain' }).check();
  await main(page).getByRole('checkbox', { name: 'vault' }).check();
  await expect(page.getByText(t.signing.mixed({ signed: 1, others: 1 }))).toBeVisible();
  await main(page).getByRole('checkbox', { name: 'plain' }).uncheck();
  await expect(field(page, t.schedules.timeZone())).toHaveValue('UTC');
  await expect(main(page)).toContainText(t.schedules.asksSigned({ count: 1 }));
  await field(page, t.schedules.cron()).fill(cron);
  await press(page, t.schedules.createSigned());
  const dialog = page.getByRole('dialog', { name: t.signing.titleSchedule() });
  await expect(dialog).toContainText(`${cron} (UTC)`);
  await expectAccessible(page);
  await dialog.getByRole('button', { name: t.signing.signAndSave(), exact: true }).click();

  await expect(page.getByRole('heading', { name: 'Greeting' })).toBeVisible();
  await expect(main(page).getByText(t.schedules.signed(), { exact: true })).toBeVisible();
  const address = page.url();
  const run = page.getByRole('region', { name: t.schedules.runs(), exact: true }).getByRole('row').nth(1);
  await expect(run).toContainText(t.schedules.succeeded(), RUN);
  await run.getByRole('link').click();
  await expect(page.getByRole('row', { name: 'vault' })).toContainText('hello 42');

  await page.goto(`${origin}/run?view=schedules`);
  const rows = page.getByRole('list', { name: t.schedules.list() }).getByRole('listitem');
  await expect(rows.filter({ hasText: 'Cleaning' })).toContainText(t.schedules.failed(), RUN);
  await expect(rows.filter({ hasText: 'Greeting' })).toContainText(t.schedules.signed());
  await page.goto(`${origin}/servers/${plain.id}`);
  await expect(
    main(page)
      .getByText(t.overview.scheduleFailed({ name: 'Cleaning' }))
      .first(),
  ).toBeVisible();

  // What does not change what was signed is saved without a signature; what does is signed again.
  await page.goto(`${address}&edit=1`);
  await field(page, t.schedules.name()).fill('Greetings');
  await press(page, t.schedules.save());
  await expect(page.getByRole('heading', { name: 'Greetings' })).toBeVisible();
  await page.goto(`${address}&edit=1`);
  await field(page, t.schedules.command()).fill('echo bye');
  await expect(main(page)).toContainText(t.schedules.asksAgain());
  await press(page, t.schedules.saveSigned());
  await dialog.getByRole('button', { name: t.signing.signAndSave(), exact: true }).click();
  await expect(dialog).toBeHidden();
  await expect(main(page)).toContainText('echo bye');
});

test('missed runs are counted in the list and on the page of a schedule', async ({ signedIn: page, account, site }) => {
  const server = await site.server(account);
  await site.agent(account, server, '--commands', 'on');
  const body = { name: 'Backup', server_ids: [server.id], command: 'true', cron: '0 3 * * *', time_zone: 'UTC' };
  const { id } = await site.call<{ id: string }>('POST', '/schedules', account.token, body);
  // A service that was down at three is not to be had on demand.
  const missed = { missed: 2, missed_at: new Date(Date.now() - 3_600_000).toISOString() };
  await page.route(/\/api\/v1\/schedules(\?|\/)/, async (route) => {
    const response = await answerTo(route);
    const json: unknown = await response.json();
    const all = Array.isArray(json)
      ? json.map((one: object) => ({ ...one, ...missed }))
      : { ...(json as object), ...missed };
    await route.fulfill({ response, json: all });
  });

  await page.goto('/run?view=schedules');
  await expect(page.getByRole('listitem').filter({ hasText: 'Backup' })).toContainText(
    t.schedules.missedCount({ count: 2 }),
  );
  await page.goto(`/run?view=schedules&schedule=${id}`);

  await expect(main(page).getByRole('status').filter({ hasText: t.schedules.missedText() })).toBeVisible();
});
