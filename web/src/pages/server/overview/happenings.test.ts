import { expect, it } from 'vitest';
import type { Alert, AuditEntry } from '../../../api/types';
import {
  isNoted,
  markOfBoot,
  marksOfAlert,
  marksOfAudit,
  marksOfEvent,
  marksOfStored,
  marksWithin,
  withIdsOf,
} from './happenings';

function entry(changes: Partial<AuditEntry>): AuditEntry {
  return {
    seq: 1,
    at: '2026-11-21T21:20:00Z',
    owner_id: 'o',
    username: 'ada',
    address: '',
    action: 'command.run',
    target: 'c1',
    outcome: 'started',
    detail: { command: 'uptime' },
    hash: '',
    ...changes,
  };
}

function alert(changes: Partial<Alert>): Alert {
  return {
    id: 'a1',
    owner: { id: 'u', username: 'ada' },
    server_id: 's',
    threshold_id: 't',
    metric_type: 'cpu',
    comparison: 'gt',
    threshold_value: 80,
    value: 90,
    peak_value: 95,
    duration_seconds: 0,
    severity: 'critical',
    status: 'active',
    silenced: false,
    message: 'CPU is above 80 %',
    triggered_at: '2026-11-21T21:20:00Z',
    ...changes,
  };
}

it('alerts are marked when they are raised and when they end', () => {
  expect(marksOfAlert(alert({}), 'db').map((mark) => mark.tone)).toEqual(['bad']);

  const ended = marksOfAlert(alert({ status: 'resolved', resolved_at: '2026-11-21T21:25:00Z' }), 'db');

  expect(ended.map((mark) => mark.at)).toEqual([1_795_296_000, 1_795_296_300]);
});

it('alerts do not repeat whose page it is', () => {
  const told = alert({ metric_type: 'schedule', message: 'schedule nightly on db failed' });

  expect(marksOfAlert(told, 'db')[0]?.title).toBe('Schedule nightly failed');
});

it('a command is marked once, when it was started', () => {
  const marks = marksOfAudit([entry({ seq: 2, outcome: 'ok', detail: {} }), entry({})], '/servers/s');

  expect(marks).toEqual([
    {
      id: 'audit:1',
      at: 1_795_296_000,
      kind: 'command',
      tone: 'accent',
      title: 'ada ran a command',
      detail: 'uptime',
      href: '/servers/s/commands?command=c1',
    },
  ]);
});

it('what was refused says so, and what changes nothing on the machine is no mark', () => {
  const marks = marksOfAudit(
    [
      entry({ action: 'container.stop', outcome: 'refused', target: 'web', detail: {} }),
      entry({ action: 'server.update' }),
    ],
    '/servers/s',
  );

  expect(marks.map((mark) => [mark.title, mark.tone])).toEqual([['ada stopped the container web (refused)', 'warn']]);
});

it('what was done to a container names it, by its id where its name is not known', () => {
  const target = 'f0e1d2c3b4a5968778695a4b3c2d1e0f'.repeat(2);
  const started = entry({ action: 'container.start', target, detail: {} });
  const ended = entry({ seq: 2, action: 'container.start', target, outcome: 'ok', detail: { name: 'shop' } });
  const titles = (...entries: AuditEntry[]) => marksOfAudit(entries, '/servers/s').map((mark) => mark.title);

  expect(titles(ended, started)).toEqual(['ada started the container shop']);
  expect(titles(started)).toEqual(['ada started the container f0e1d2c3b4a5']);
  expect(titles({ ...started, target: 'payments-reconciliation' })).toEqual([
    'ada started the container payments-reconciliation',
  ]);
});

it('a container that died with a fault is worse than one that ended', () => {
  const died = { kind: 'container', action: 'die', name: 'web', at: 5000, timestamp: '2026-11-21T21:20:00Z' };

  expect(marksOfEvent({ ...died, exit_code: 137 })[0]).toMatchObject({
    at: 1_795_296_000,
    title: 'web ended with 137',
    tone: 'bad',
  });
  expect(marksOfEvent({ ...died, exit_code: 0 })[0]?.tone).toBe('warn');
  expect(marksOfEvent({ kind: 'containers', at: 1 })).toEqual([]);
});

it('a schedule that failed is marked, with the way to its run', () => {
  const kept = { id: 'e1', server_id: 's', at: '2026-11-21T21:20:01Z', kind: 'schedule_failed' };

  const detail = { name: 'Backup', batch_id: 'b1', schedule_owner_id: 'u1' };
  const own = marksOfStored({ ...kept, detail }, 'u1')[0];
  const others = marksOfStored({ ...kept, detail }, 'u2')[0];

  expect(own).toMatchObject({ kind: 'command', tone: 'bad', title: 'Schedule Backup failed', href: '/run/b1' });
  expect(others).toMatchObject({ title: 'Schedule Backup failed' });
  expect(others).not.toHaveProperty('href');
});

it('what the service kept is marked, and a container as in its live event', () => {
  const kept = { id: 'e1', server_id: 's', at: '2026-11-21T21:20:01Z' };
  const detail = { action: 'die', name: 'web', exit_code: 137, timestamp: '2026-11-21T21:20:00Z' };

  const mark = marksOfStored({ ...kept, kind: 'reboot', detail: {} })[0];

  expect(mark).toEqual({
    id: 'event:e1',
    at: 1_795_296_001,
    kind: 'restart',
    tone: 'accent',
    title: 'Machine restarted',
  });
  expect(marksOfStored({ ...kept, kind: 'container', detail })).toEqual(
    marksOfEvent({ kind: 'container', at: 1, ...detail }),
  );
  expect(marksOfStored({ ...kept, kind: 'of-a-newer-version', detail: {} })).toEqual([]);
});

it('what was shown before the service kept it keeps its id, each once', () => {
  const shown = (['online', 'offline', 'online'] as const).flatMap((status, index) =>
    marksOfEvent({ kind: 'status', status, at: 1_795_296_000_000 + index * 4_000 }),
  );
  const stored = (id: string, kind: string, at: string) =>
    marksOfStored({ id, server_id: 's', at: `2026-11-21T${at}Z`, kind, detail: {} });
  // The newest first, as the service lists them.
  const all = [
    ...stored('e5', 'online', '21:20:08.100'),
    ...stored('e4', 'offline', '21:20:04.100'),
    ...stored('e3', 'reboot', '21:20:00.200'),
    ...stored('e2', 'online', '21:20:00.100'),
    ...stored('e1', 'online', '20:00:00'),
  ];

  expect(withIdsOf(shown, all)).toEqual(
    [shown[2]?.id, shown[1]?.id, 'event:e3', shown[0]?.id, 'event:e1'].map((id, index) => ({ ...all[index], id })),
  );
  expect(withIdsOf([], all)).toEqual(all);
});

it('a policy that changed says what it permits now and no longer', () => {
  const kept = { id: 'e1', server_id: 's', at: '2026-11-21T21:20:00Z', kind: 'policy' };
  const detail = { gained: ['commands', 'terminal'], lost: ['logs'] };

  expect(marksOfStored({ ...kept, detail })[0]).toMatchObject({
    kind: 'agent',
    title: 'Agent policy changed: +commands, +terminal, −logs',
  });
});

it('deploys and notes name their author and lead to their page', () => {
  const written = { id: 'e1', server_id: 's', at: '2026-11-21T21:20:00Z' };
  const url = 'https://git.example.com/pipelines/1';
  const deploy = { text: 'Shop', version: '2.14.0', url, username: 'ada' };

  expect(marksOfStored({ ...written, kind: 'deploy', detail: deploy })).toEqual([
    {
      id: 'event:e1',
      at: 1_795_296_000,
      kind: 'deploy',
      tone: 'accent',
      title: 'Deployed Shop, 2.14.0',
      eventId: 'e1',
      by: 'ada',
      href: url,
    },
  ]);
  const note = marksOfStored({ ...written, kind: 'note', detail: { text: 'Moved', url: 'javascript:alert(1)' } })[0];
  expect(note).toMatchObject({ kind: 'note', title: 'Moved' });
  expect(note?.href).toBeUndefined();
});

it('a start that was noted is not marked once more by the uptime', () => {
  const boot = markOfBoot(1_000_000, 500);
  const noted = (at: number) => ({ id: 'e', at, kind: 'restart' as const, tone: 'accent' as const, title: '' });

  expect(isNoted(boot, [noted(boot.at + 40)])).toBe(true);
  expect(isNoted(boot, [noted(boot.at - 4_000)])).toBe(false);
});

it('the start of the machine is the same mark with each sample', () => {
  const [one, next] = [markOfBoot(1_000_005.9, 501), markOfBoot(1_000_007.1, 502)];

  expect(one.at).not.toBe(next.at);
  expect(one.id).toBe(next.id);
});

it('marks of a span come once, the newest first', () => {
  const mark = (id: string, at: number) => ({ id, at, kind: 'agent' as const, tone: 'ok' as const, title: id });

  expect(marksWithin([mark('a', 5), mark('b', 7), mark('a', 5), mark('c', 50)], 0, 10).map((one) => one.id)).toEqual([
    'b',
    'a',
  ]);
});
