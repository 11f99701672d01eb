// Every page with something on it, for tests of all of them.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { castOf, ID, idOf } from './recordings.ts';
import { askForMore, serverWith, sshKey } from './signing.ts';
import type { Account, ManagedServer, Site } from './site.ts';
import { enter, expect, test, type Control } from './test.ts';
import * as t from './texts.ts';

export interface Shown {
  path: string;
  /** What is there when the page is whole; `server` is the name of the server that has an agent. */
  ready: (page: Page, server: string) => ReturnType<Page['getByText']>;
  /** What a person does first, where the page has more than one step. */
  first?: (page: Page) => Promise<void>;
}

const heading = (name: string) => (page: Page) => page.getByRole('heading', { name, exact: true });
const headingOfServer = (page: Page, server: string) => page.getByRole('heading', { name: server, exact: true });
const rowOfServer = (page: Page, server: string) => page.getByRole('row', { name: server });
const button = (name: string) => (page: Page) => page.getByRole('button', { name, exact: true });
const canvas = (page: Page) => page.locator('figure canvas').first();

const ofServer = (part: string, ready: Shown['ready']): Shown => ({ path: `/servers/SERVER${part}`, ready });

/** Its lines are longer than a phone is wide. */
const LONG_COMMAND =
  'for each in $(seq 40); do echo "payments-reconciliation-worker-blue: $each of 40 accounts are as they were at 03:12:07"; done';

export const signedIn: Shown[] = [
  { path: '/?view=cards', ready: (page) => page.getByRole('article').first() },
  { path: '/?view=table', ready: rowOfServer },
  { path: '/servers?view=cards', ready: (page) => page.getByRole('article').first() },
  { path: '/servers/new', ready: button(t.addServer.next()) },
  {
    path: '/servers/new?',
    first: async (page) => {
      await page.getByLabel(t.addServer.name()).fill('next-one');
      await page.getByRole('button', { name: t.addServer.next() }).click();
    },
    ready: (page) => page.getByLabel(t.install.installLine()),
  },
  { path: '/alerts', ready: rowOfServer },
  { path: '/alerts?view=history', ready: (page) => page.getByRole('row').nth(1) },
  { path: '/alerts?view=thresholds', ready: (page) => page.getByRole('switch').first() },
  { path: '/alerts/ALERT', ready: heading(t.alerts.timeline()) },
  { path: '/alerts/00000000-0000-4000-8000-000000000000', ready: heading(t.app.notFound()) },
  { path: '/timeline', ready: (page, server) => page.getByRole('table').getByRole('button', { name: server }) },
  {
    path: '/timeline?server=SERVER&at=2026-11-20T03:12:00Z&from=2026-11-20T00:00:00Z&to=2026-11-20T06:00:00Z',
    ready: headingOfServer,
  },
  { path: '/logs', ready: (page) => page.getByRole('dialog') },
  {
    path: '/logs?log=SERVER:file:LOG',
    ready: (page) => page.getByRole('log', { name: t.mix.lines() }).getByText('worse'),
  },
  {
    path: '/logs?log=SERVER:file:LOG&past=1&since=2026-11-20T00:00:00Z&until=2026-11-21T00:00:00Z',
    ready: (page) => page.getByRole('button', { name: t.mix.search(), exact: true }),
  },
  { path: '/run', ready: heading(t.run.earlier()) },
  { path: '/run?view=waiting', ready: button(t.approvals.addAnother()) },
  { path: '/run/APPROVAL', ready: heading(t.approvals.signatures()) },
  { path: '/run?view=schedules', ready: (page) => page.getByRole('list', { name: t.schedules.list() }) },
  { path: '/run?view=schedules&schedule=SCHEDULE', ready: heading(t.schedules.nextRuns()) },
  { path: '/run?view=schedules&schedule=SCHEDULE&edit=1', ready: heading(t.schedules.preview()) },
  { path: '/run?view=schedules&new=1', ready: heading(t.schedules.preview()) },
  {
    path: '/run?view=schedules&schedule=00000000-0000-4000-8000-000000000000',
    ready: heading(t.schedules.gone()),
  },
  { path: '/run/BATCH', ready: (page) => page.getByText(t.run.doneOf({ done: 1, total: 1 })) },
  { path: '/explore', ready: heading(t.explore.savedViews()) },
  { path: '/explore?s=cpu_percent,memory_used&range=1h', ready: (page) => page.getByRole('rowheader').first() },
  { path: '/explore?view=VIEW', ready: (page) => page.getByRole('rowheader').first() },
  { path: '/dashboards', ready: (page) => page.getByRole('main').getByRole('listitem').first() },
  { path: '/dashboards/BOARD', ready: canvas },
  { path: '/dashboards/BOARD?edit=1', ready: button(t.dashboards.save()) },
  { path: '/dashboards/BOARD/wall', ready: canvas },
  { path: '/dashboards/00000000-0000-4000-8000-000000000000', ready: heading(t.dashboards.gone()) },
  { path: '/account', ready: button(t.account.save()) },
  { path: '/account/security', ready: (page) => page.getByText(t.security.thisOne(), { exact: true }) },
  {
    path: '/account/notifications',
    ready: (page) => page.getByRole('region', { name: t.channels.messages(), exact: true }).getByRole('row').nth(1),
  },
  { path: '/account/silences', ready: button(t.silences.change()) },
  {
    path: '/account/teams',
    ready: (page) => page.getByRole('button', { name: t.like(t.teams.renameOf({ team: '{}' })) }).first(),
  },
  { path: '/account/tokens', ready: button(t.tokens.revokeTitle({ name: 'prometheus-of-the-northern-data-centre' })) },
  { path: '/account/updates', ready: rowOfServer },
  { path: '/account/updates?new=1', ready: heading(t.updates.noRelease()) },
  {
    path: '/account/updates?rollout=00000000-0000-4000-8000-000000000000',
    ready: heading(t.updates.gone()),
  },
  { path: '/account/audit', ready: (page) => page.getByRole('row').nth(1) },
  { path: '/account/about', ready: heading(t.account.thisService()) },
  { path: '/wall', ready: (page) => page.getByRole('heading', { level: 2 }).first() },
  { path: '/nowhere', ready: heading(t.app.notFound()) },
  { path: '/servers/nonsense', ready: heading(t.app.notFound()) },
  { path: '/servers/00000000-0000-4000-8000-000000000000', ready: heading(t.app.notFound()) },
  { path: '/servers/AWAY', ready: (page) => page.getByText(t.server.offline(), { exact: true }).first() },
  { path: '/servers/AWAY/containers', ready: (page) => page.getByText(t.server.offline(), { exact: true }).first() },
  { path: '/servers/AWAY/commands', ready: (page) => page.getByText(t.server.offline(), { exact: true }).first() },
  { path: '/servers/SHARED/commands', ready: heading(t.access.notAllowed()) },
  { path: '/servers/SHARED/alerts', ready: button(t.alertList.acknowledge()) },
  { path: '/servers/SHARED/keys', ready: button(t.keys.create()) },
  { path: '/servers/SHARED/settings', ready: button(t.settings.deleteServer()) },
  { path: '/servers/RECORDED/terminal', ready: heading(t.recordings.recordings()) },
  {
    path: '/servers/RECORDED/terminal?recording=RECORDING',
    ready: (page) => page.getByRole('region', { name: t.recordings.player() }),
  },
  { path: '/servers/SIGNED/settings', ready: heading(t.settings.whoSigns()) },
  ofServer('', canvas),
  ofServer('/containers', (page) => page.getByRole('searchbox')),
  ofServer('/logs?source=file&path=LOG', (page) => page.getByText(t.liveLog.live(), { exact: true })),
  ofServer('/logs?source=file&path=LOG&past=1', button(t.logs.search())),
  ofServer('/commands', button(t.app.run())),
  {
    path: '/servers/SERVER/commands?',
    first: async (page) => {
      await page.getByRole('textbox', { name: t.commands.command() }).fill(`${LONG_COMMAND}; echo refused >&2; exit 3`);
      await page.getByRole('button', { name: t.commands.run(), exact: true }).click();
    },
    ready: (page) => page.getByRole('region', { name: t.commandParts.output() }).getByText('refused'),
  },
  ofServer('/terminal', button(t.terminal.openTerminal())),
  {
    path: '/servers/SERVER/terminal?',
    first: (page) => page.getByRole('button', { name: t.terminal.openTerminal() }).click(),
    ready: (page) => page.getByText(t.terminal.open(), { exact: true }),
  },
  ofServer('/alerts', (page) =>
    page
      .getByRole('main')
      .getByText(/memory/i)
      .first(),
  ),
  ofServer('/alerts?new=memory', heading(t.serverAlerts.addRule())),
  ofServer('/alerts?new=container_state', heading(t.serverAlerts.addRule())),
  ofServer('/keys', button(t.keys.create())),
  ofServer('/settings', button(t.settings.deleteServer())),
];

/** Pages for everybody. */
export const open: Shown[] = [
  { path: '/sign-in', ready: (page) => page.getByLabel(t.signIn.password(), { exact: true }) },
  { path: '/register', ready: (page) => page.getByLabel(t.signIn.password(), { exact: true }) },
  { path: '/help', ready: (page) => page.getByRole('heading', { level: 1 }) },
  { path: '/help/guides/agents', ready: (page) => page.getByRole('heading', { level: 1 }) },
  { path: '/help/operate/troubleshooting', ready: (page) => page.getByRole('heading', { level: 1 }) },
  { path: '/help/reference/flags', ready: (page) => page.getByRole('heading', { level: 1 }) },
];

const KINDS = [
  'SERVER',
  'ALERT',
  'APPROVAL',
  'BATCH',
  'LOG',
  'VIEW',
  'BOARD',
  'AWAY',
  'SCHEDULE',
  'SHARED',
  'SIGNED',
  'RECORDED',
  'RECORDING',
] as const;

type Things = Record<(typeof KINDS)[number], string>;

/** Something of everything, made once for an account. */
const things = new Map<Control, Promise<Things>>();

async function make(site: Site, { account, server, logs }: Control): Promise<Things> {
  const create = (path: string, body: object) => site.call<{ id: string }>('POST', path, account.token, body);
  // Before the alert, which is sent to it.
  const url = 'https://ntfy.example.com/a-topic-that-nobody-can-guess-because-it-is-long';
  await create('/notifications/channels', { name: 'on-call', type: 'ntfy', settings: { url } });
  await create('/alerts/thresholds', {
    server_id: server.id,
    metric_type: 'memory',
    comparison: 'gt',
    threshold_value: 0.01,
    enabled: true,
  });
  const batch = await create('/commands', { command: 'echo once', server_ids: [server.id] });
  const schedule = await create('/schedules', {
    name: 'Nightly backup of the databases in both data centres',
    command: '/usr/local/bin/backup --all-databases --compress --to s3://backups-of-the-northern-data-centre/nightly',
    server_ids: [server.id],
    tag: 'lab',
    cron: '30 2 * * MON-FRI',
    time_zone: 'America/Argentina/Buenos_Aires',
  });
  const view = await create('/views', {
    name: 'CPU of all servers in both data centres',
    description: 'The ten that are busiest.',
    definition: { version: 1, series: ['cpu_percent'], range: '15m' },
  });
  const panels = [
    { view_id: view.id, width: 6 },
    { view_id: view.id, width: 6, height: 2 },
  ];
  const board = await create('/dashboards', { name: 'Morning round', layout: { version: 1, panels } });
  await create(`/servers/${server.id}/events`, { kind: 'note', text: 'New disks in rack 4, with younger firmware' });
  await create('/tokens', {
    name: 'prometheus-of-the-northern-data-centre',
    scope: { server_ids: [server.id] },
    networks: ['10.0.0.0/8', '2001:db8::/32'],
  });
  // Longer than the tests of a worker take, on a slow machine too.
  const ends_at = new Date(Date.now() + 24 * 3_600_000).toISOString();
  await create('/alerts/silences', { tag: 'rack-4', reason: 'New disks in rack 4', ends_at });
  const away = await site.server(account, 'nightly-backup-store-of-the-old-building');
  await (await site.agent(account, away)).end('SIGTERM');
  let alert: { id: string } | undefined;
  await site.until(async () => {
    [alert] = await site.call<{ id: string }[]>('GET', `/alerts?server_id=${server.id}`, account.token);
    return alert !== undefined;
  }, 'the alert is open');
  await site.until(async () => {
    const sent = await site.call<{ error: string | null }[]>('GET', '/notifications/deliveries', account.token);
    return sent.some(({ error }) => error !== null);
  }, 'the channel of the alert has failed');
  const log = join(logs, 'page.log');
  writeFileSync(log, 'well\n\u001b[33mworse\u001b[0m\n\u001b[31mbad\u001b[0m\n');
  return {
    SERVER: server.id,
    ALERT: alert?.id ?? '',
    BATCH: batch.id,
    LOG: log,
    VIEW: view.id,
    BOARD: board.id,
    AWAY: away.id,
    SCHEDULE: schedule.id,
    SHARED: await shareAll(site, account, server),
    RECORDED: await recorded(site, account),
    RECORDING: ID,
    ...(await waitForSignatures(site, account)),
  };
}

/** A server whose agent has recorded terminals of people with long names. */
async function recorded(site: Site, account: Account): Promise<string> {
  const server = await site.server(account, 'bastion-of-the-northern-data-centre');
  const cast = castOf('katherine-of-the-night-shift from 2001:db8:1234:5678:9abc:def0:1234:5678', Date.now());
  site.keepsRecordings(server, { [ID]: cast, [idOf(1)]: castOf('ada from ::1', Date.now() - 86_400_000) });
  await site.agent(account, server, '--terminal', 'on', '--record', 'on');
  return server.id;
}

/** A server that asks for two people, and a command that one of them has signed. */
async function waitForSignatures(site: Site, account: Account): Promise<Pick<Things, 'APPROVAL' | 'SIGNED'>> {
  const [ada, ben] = [sshKey(site, 'ada'), sshKey(site, 'ben')];
  const server = await serverWith(site, account, 'vault-of-the-northern-data-centre', [ada.line, ben.line]);
  const command = 'systemctl restart payments-reconciliation-worker-blue.service && journalctl -u payments -n 20';
  const { id } = await askForMore(site, account, server, ada, { command });
  return { APPROVAL: id, SIGNED: server.id };
}

/** Shares a server with a team, and lets somebody share one of theirs, which is returned: what is disabled is on its pages. */
async function shareAll(site: Site, account: Account, server: ManagedServer): Promise<string> {
  const colleague = await site.account();
  const grant = (by: Account, body: object) => site.call('POST', '/grants', by.token, body);
  const team = await site.call<{ id: string }>('POST', '/teams', account.token, {
    name: site.unique('On call at night'),
  });
  await site.call('PUT', `/teams/${team.id}/members/${colleague.username}`, account.token);
  await grant(account, { subject: { team_id: team.id }, scope: { tag: 'lab' }, role: 'responder' });
  const { username } = colleague;
  await grant(account, { subject: { username }, scope: { server_id: server.id }, role: 'operator', rights: ['logs'] });
  const theirs = await site.server(colleague, 'database-of-a-colleague', ['lab', 'shared']);
  await site.agent(colleague, theirs, '--commands', 'on');
  const rule = { metric_type: 'memory', comparison: 'gt', threshold_value: 0.01 };
  await site.call('POST', '/alerts/thresholds', colleague.token, { ...rule, server_id: theirs.id });
  await site.until(async () => {
    const open = await site.call<unknown[]>('GET', `/alerts?server_id=${theirs.id}`, colleague.token);
    return open.length > 0;
  }, 'the alert of the colleague is open');
  await grant(colleague, { subject: { username: account.username }, scope: { server_id: theirs.id }, role: 'viewer' });
  return theirs.id;
}

/** Its address, with things of an account in it. */
export async function address(path: string, site: Site, of: Control): Promise<string> {
  let making = things.get(of);
  if (!making) {
    // The first test of a worker that needs them waits for agents, signatures and alerts.
    test.info().setTimeout(test.info().timeout + 120_000);
    making = make(site, of);
    things.set(of, making);
  }
  const made = await making;
  return path.replace(new RegExp(`\\b(${KINDS.join('|')})\\b`, 'g'), (word) => made[word as keyof Things]);
}

/** Opens a page as somebody who has all that, and waits until it is whole. */
export async function show(page: Page, { path, ready, first }: Shown, site: Site, of: Control): Promise<void> {
  await enter(page, of.account, await address(path, site, of));
  await first?.(page);
  await expect(ready(page, of.server.name).first()).toBeVisible();
}
