// The token of a socket expires while it is open: the page renews it there, and messages continue without a break.
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import type { Site } from './support/site.ts';
import { enter, expect, FROM_A_SHELL, navigation, test, type Control } from './support/test.ts';
import { chooseLog, logButton } from './support/logs.ts';
import { giveFleeting, giveNext, giveOnce, LEFT_S } from './support/token.ts';
import * as t from './support/texts.ts';

/** The service may be late by this when it closes a socket whose token has expired. */
const LATE_MS = 2_000;

type GoOn = () => Promise<void>;

interface Watched {
  socket: string;
  /** Comes near to it, and opens it: gives what brings about something new on it, and waits for that. */
  come: (page: Page, control: Control) => Promise<void>;
  open: (page: Page, control: Control, site: Site) => Promise<GoOn>;
}

const sockets: Watched[] = [
  {
    socket: '/ws/logs/',
    come: async (page, { server }) => {
      // The page begins with the system's log: that socket is not the one that is watched.
      const first = page.waitForEvent('websocket', (socket) => socket.url().includes('/ws/logs/'));
      await page.goto(`/servers/${server.id}/logs`);
      await expect(logButton(page)).toBeVisible();
      await first;
    },
    open: async (page, { logs }, site) => {
      const file = join(logs, `${site.unique('outlasting')}.log`);
      writeFileSync(file, 'before\n');
      await chooseLog(page, t.logs.file());
      await page.getByLabel(t.logs.path()).fill(file);
      await page.getByRole('button', { name: t.logs.show(), exact: true }).click();
      const lines = page.getByRole('log', { name: t.logs.lines() });
      await expect(lines).toContainText('before');
      return async () => {
        appendFileSync(file, 'after\n');
        await expect(lines).toContainText('after');
      };
    },
  },
  {
    socket: '/ws/commands/',
    come: async (page, { server }) => {
      await page.goto(`/servers/${server.id}/commands`);
      await page.getByLabel(t.commandParts.timeLimit()).fill('300');
    },
    open: async (page, _, site) => {
      const file = join(site.directory, site.unique('go'));
      await page
        .getByRole('textbox', { name: t.commands.command() })
        // Its end would close the socket.
        .fill(`echo early; until [ -e '${file}' ]; do sleep 0.1; done; echo late; sleep 60`);
      await page.getByRole('button', { name: t.commands.run(), exact: true }).click();
      const output = page.getByRole('region', { name: t.commandParts.output() });
      await expect(output).toContainText('early');
      return async () => {
        writeFileSync(file, '');
        await expect(output).toContainText('late');
      };
    },
  },
  {
    socket: '/ws/terminal/',
    come: async (page, { server }) => {
      await page.goto(`/servers/${server.id}/terminal`);
      await page.getByRole('checkbox', { name: t.terminal.screenReader() }).check();
    },
    open: async (page, { server }) => {
      await page.getByRole('button', { name: t.terminal.openTerminal() }).click();
      const terminal = page.getByRole('region', { name: t.terminal.label({ name: server.name }) });
      await expect(terminal.getByText(t.terminal.open(), { exact: true })).toBeVisible();
      return async () => {
        await page.keyboard.type('echo $((6 * 7))still\n');
        await expect(terminal.locator('.xterm-accessibility')).toContainText('42still', FROM_A_SHELL);
      };
    },
  },
];

/** Counts what happens to the sockets of a path from now on. */
function watch(page: Page, path: string): { opened: number; renewed: number; closed: number } {
  const seen = { opened: 0, renewed: 0, closed: 0 };
  page.on('websocket', (socket) => {
    if (!socket.url().includes(path)) return;
    seen.opened += 1;
    socket.on('framesent', ({ payload }) => {
      if (payload.includes('"auth"')) seen.renewed += 1;
    });
    socket.on('close', () => (seen.closed += 1));
  });
  return seen;
}

async function past(token: { expiresAt: number }): Promise<void> {
  await expect.poll(() => Date.now(), { timeout: 60_000 }).toBeGreaterThan(token.expiresAt + LATE_MS);
}

for (const { socket, come, open } of sockets) {
  test(`${socket} outlasts the token that it was opened with`, async ({ page, control, site }) => {
    test.slow();
    await giveFleeting(page, site);
    await enter(page, control.account, '/account');
    await expect(navigation(page)).toBeVisible();
    await come(page, control);
    const seen = watch(page, socket);
    const token = await giveNext(page, site, { issued: -3600, expires: LEFT_S });
    const goOn = await open(page, control, site);

    await past(token);

    await goOn();
    expect(seen).toEqual({ opened: 1, renewed: 1, closed: 0 });
  });
}

test('/ws/alerts outlasts the token that it was opened with', async ({ page, control, site }) => {
  const { account, server } = control;
  // Every page has one: that of the first is not the one that is watched.
  const first = page.waitForEvent('websocket', (socket) => socket.url().includes('/ws/alerts'));
  await enter(page, account, '/account');
  await expect(navigation(page)).toBeVisible();
  await first;
  const seen = watch(page, '/ws/alerts');
  const token = await giveOnce(page, site, { issued: -3600, expires: LEFT_S });
  await page.goto('/alerts');
  await expect(page.getByRole('heading', { name: t.alerts.title(), level: 1 })).toBeVisible();

  await past(token);

  const { id } = await site.call<{ id: string }>('POST', '/alerts/thresholds', account.token, {
    server_id: server.id,
    metric_type: 'memory',
    comparison: 'gt',
    threshold_value: 0.02,
    severity: 'info',
    enabled: true,
  });
  const row = page.getByRole('row').filter({ hasText: '0.02' });
  try {
    await expect(row).toBeVisible();
  } finally {
    // For the other tests of this server everything is as it was.
    await site.call('DELETE', `/alerts/thresholds/${id}`, account.token);
  }
  await expect(row).toBeHidden();
  expect(seen).toEqual({ opened: 1, renewed: 1, closed: 0 });
});
