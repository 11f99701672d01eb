// Every page with something on it, for tests of all of them.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import type { Site } from './site.ts';
import type { Control } from './test.ts';
import * as t from './texts.ts';

export interface Shown {
  path: string;
  /** What is there when the page is whole. */
  ready: (page: Page) => ReturnType<Page['getByText']>;
}

const heading = (name: string) => (page: Page) => page.getByRole('heading', { name, exact: true });
const button = (name: string) => (page: Page) => page.getByRole('button', { name, exact: true });

const ofServer = (part: string, ready: Shown['ready']) => ({ path: `/servers/SERVER${part}`, ready });

export const signedIn: Shown[] = [
  { path: '/', ready: (page) => page.getByRole('article').first() },
  { path: '/?view=table', ready: (page) => page.getByRole('row', { name: /control/ }) },
  { path: '/servers/new', ready: button(t.addServer.next()) },
  { path: '/alerts', ready: (page) => page.getByRole('row', { name: /control/ }) },
  { path: '/alerts?view=history', ready: (page) => page.getByRole('row').nth(1) },
  { path: '/alerts?view=thresholds', ready: (page) => page.getByRole('switch') },
  { path: '/alerts/ALERT', ready: heading(t.alerts.timeline()) },
  { path: '/timeline', ready: (page) => page.getByRole('table').getByRole('button', { name: 'control' }) },
  {
    path: '/timeline?server=SERVER&at=2026-11-20T03:12:00Z&from=2026-11-20T00:00:00Z&to=2026-11-20T06:00:00Z',
    ready: heading('control'),
  },
  {
    path: '/logs?log=SERVER:file:LOG',
    ready: (page) => page.getByRole('log', { name: t.mix.lines() }).getByText('worse'),
  },
  { path: '/run', ready: heading(t.run.earlier()) },
  { path: '/run/BATCH', ready: (page) => page.getByText(t.run.doneOf({ done: 1, total: 1 })) },
  { path: '/account', ready: button(t.account.save()) },
  { path: '/account/security', ready: (page) => page.getByText(t.security.thisOne(), { exact: true }) },
  { path: '/account/notifications', ready: heading(t.channels.title()) },
  { path: '/account/silences', ready: heading(t.silences.title()) },
  { path: '/account/audit', ready: (page) => page.getByRole('row').nth(1) },
  { path: '/account/about', ready: heading(t.account.thisService()) },
  { path: '/wall', ready: heading('control') },
  { path: '/servers/nonsense', ready: heading(t.app.notFound()) },
  ofServer('', (page) => page.locator('figure canvas').first()),
  ofServer('/containers', (page) => page.getByRole('searchbox')),
  ofServer('/logs?source=file&path=LOG', (page) => page.getByText(t.liveLog.live(), { exact: true })),
  ofServer('/commands', button(t.app.run())),
  ofServer('/terminal', button(t.terminal.openTerminal())),
  ofServer('/alerts', (page) =>
    page
      .getByRole('main')
      .getByText(/memory/i)
      .first(),
  ),
  ofServer('/keys', button(t.keys.create())),
  ofServer('/settings', button(t.settings.deleteServer())),
];

/** Something of everything, made once for the account of `control`. */
const things = new Map<Site, Promise<Record<string, string>>>();

async function make(site: Site, { account, server, logs }: Control): Promise<Record<string, string>> {
  await site.call('POST', '/alerts/thresholds', account.token, {
    server_id: server.id,
    metric_type: 'memory',
    comparison: 'gt',
    threshold_value: 0.01,
    enabled: true,
  });
  const batch = await site.call<{ id: string }>('POST', '/commands', account.token, {
    command: 'echo once',
    server_ids: [server.id],
  });
  let alert: { id: string } | undefined;
  await site.until(async () => {
    [alert] = await site.call<{ id: string }[]>('GET', `/alerts?server_id=${server.id}`, account.token);
    return alert !== undefined;
  }, 'the alert is open');
  const log = join(logs, 'page.log');
  writeFileSync(log, 'well\n\u001b[33mworse\u001b[0m\n\u001b[31mbad\u001b[0m\n');
  return { SERVER: server.id, ALERT: alert?.id ?? '', BATCH: batch.id, LOG: log };
}

/** Its address, with things of the account of `control` in it. */
export async function address(path: string, site: Site, control: Control): Promise<string> {
  const making = things.get(site) ?? make(site, control);
  things.set(site, making);
  const made = await making;
  return path.replace(/SERVER|ALERT|BATCH|LOG/g, (word) => made[word] ?? word);
}
