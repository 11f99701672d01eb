import { expect, test } from 'vitest';
import type { AuditEntry } from '../api/types';
import { happened, isCut, ofAudit, scoped } from './happened';
import { alertThen, AROUND, AT, eventThen } from './testing';

function entry(seq: number, action: string, more: Partial<AuditEntry> = {}): AuditEntry {
  return {
    seq,
    at: AT,
    owner_id: 'o',
    user_id: 'u',
    username: 'ada',
    login_id: null,
    address: '203.0.113.7',
    action,
    server_id: null,
    server_name: null,
    target: null,
    outcome: 'ok',
    detail: {},
    hash: '',
    ...more,
  };
}

const alert = alertThen();
const reboot = eventThen('e1', 'reboot', { server_id: 's2' });

test('a command stands there once, by its start, with what was run', () => {
  const of = { server_id: 's1', server_name: 'db-1', target: 'c1' };
  const told = ofAudit([
    entry(2, 'command.run', { ...of, detail: { exit_code: 0 } }),
    entry(1, 'command.run', { ...of, outcome: 'started', detail: { command: 'pg_dump shop' } }),
  ]);

  expect(told).toHaveLength(1);
  expect(told[0]).toMatchObject({
    code: 'pg_dump shop',
    icon: 'terminal',
    href: '/servers/s1/commands?command=c1',
    serverId: 's1',
  });
  expect(told[0]?.by).toContain('203.0.113.7');
});

test('a container that was started has the name that is known at the end', () => {
  const of = { server_id: 's1', server_name: 'db-1', target: 'f0e1d2c3b4a5968778695a4b3c2d1e0f' };
  const told = ofAudit([
    entry(2, 'container.start', { ...of, detail: { name: 'shop' } }),
    entry(1, 'container.start', { ...of, outcome: 'started' }),
  ]);

  expect(told.map(({ title }) => title)).toEqual(['Started the container shop on db-1']);
});

test('a refused sign-in is a warning that names the address', () => {
  const [told] = ofAudit([entry(1, 'login', { outcome: 'refused' })]);

  expect(told).toMatchObject({ tone: 'warn', icon: 'key', serverId: null });
  expect(told?.by).toContain('203.0.113.7');
});

test('alerts, events and deeds are one list by time, within the span alone', () => {
  const late = entry(9, 'login', { at: '2026-11-21T09:00:00.000Z' });
  const sources = { alerts: [alert], entries: [late, entry(1, 'login')], events: [reboot, reboot] };

  const all = happened(sources, () => 'db-1', AROUND);

  expect(all.map(({ icon }) => icon).sort()).toEqual(['bell', 'key', 'refresh']);
  expect(all.find(({ icon }) => icon === 'bell')).toMatchObject({
    title: 'CPU above 90 %',
    href: '/alerts/a1',
    tone: 'bad',
  });
});

test('of what is about no server, sign-ins alone stand beside what is about this one', () => {
  const entries = [entry(1, 'login'), entry(2, 'view.create', { target: 'v1' })];
  const all = happened({ alerts: [alert], entries, events: [reboot] }, () => undefined, AROUND);

  expect(
    scoped(all, 's1')
      .map(({ icon }) => icon)
      .sort(),
  ).toEqual(['bell', 'key']);
  expect(scoped(all, null)).toHaveLength(4);
});

test('an alert that was acknowledged stands there once', () => {
  const entries = [entry(1, 'alert.acknowledge', { target: 'a1' }), entry(2, 'alert.note', { target: 'a1' })];

  expect(happened({ alerts: [], entries, events: [] }, () => undefined, AROUND)).toHaveLength(1);
});

test('a deploy stands there once, and not as an entry of the audit log besides', () => {
  const detail = { text: 'Shop', version: '2.14.0', username: 'ada' };
  const deploy = eventThen('e2', 'deploy', { detail });
  const entries = [
    entry(1, 'event.create', { server_id: 's1', target: 'e2', detail: { kind: 'deploy', text: 'Shop' } }),
    entry(2, 'event.delete', {
      server_id: 's1',
      server_name: 'db-1',
      target: 'e9',
      detail: { kind: 'note', text: 'Old' },
    }),
  ];

  const all = happened({ alerts: [], entries, events: [deploy] }, () => 'db-1', AROUND);

  expect(all.map((one) => one.title)).toEqual(['Deployed Shop, 2.14.0', 'Deleted a note of db-1']);
  expect(all[0]).toMatchObject({ by: 'ada', eventId: 'e2', icon: 'send' });
});

test('there may be more than what was read where a kind has as many as are read', () => {
  const sources = { alerts: [], entries: [entry(1, 'login')], events: [reboot, reboot] };

  expect(isCut(sources, 2)).toBe(true);
  expect(isCut(sources, 3)).toBe(false);
});
