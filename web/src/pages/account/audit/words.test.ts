import { expect, test } from 'vitest';
import type { AuditEntry } from '../../../api/types';
import { GROUPS, outcomeWords, wordsOf } from './words';

/** What was done, as plain text. */
const didOf = (entry: AuditEntry) =>
  wordsOf(entry)
    .did.map((part) => (typeof part === 'string' ? part : part[1]))
    .join('');

function entry(action: string, more: Partial<AuditEntry> = {}): AuditEntry {
  return {
    seq: 1,
    at: '2026-11-21T10:00:00.000Z',
    owner_id: 'o',
    user_id: 'o',
    username: 'ada',
    login_id: null,
    address: '203.0.113.7',
    action,
    server_id: null,
    server_name: null,
    target: null,
    outcome: 'ok',
    token: null,
    detail: {},
    hash: '',
    ...more,
  };
}

test('signing in and failing to are told apart', () => {
  expect(didOf(entry('login'))).toBe('signed in');
  expect(didOf(entry('login', { outcome: 'refused' }))).toBe('tried to sign in');
});

test('what was done to an account names it', () => {
  const of = (action: string, detail = {}) => didOf(entry(action, { detail: { username: 'bob', ...detail } }));

  expect(of('user.register')).toBe('created the account');
  expect(of('user.disable')).toBe('disabled the account bob');
  expect(of('user.demote')).toBe('removed bob as administrator');
  expect(of('user.delete')).toBe('deleted the account bob');
  expect(didOf(entry('user.delete', { outcome: 'refused' }))).toBe('tried to delete the account');
  expect(of('invitation.create')).toBe('invited somebody');
  expect(of('invitation.revoke', { email: 'c@example.com' })).toBe('revoked the invitation of c@example.com');
  expect(didOf(entry('server.transfer', { server_name: 'web-1', detail: { from: 'bob', to: 'ada' } }))).toBe(
    'gave the server web-1 to ada',
  );
});

test('what waits for signatures and what recurs is named', () => {
  const detail = { name: 'backup', command: 'make backup' };

  expect(wordsOf(entry('schedule.create', { detail }))).toEqual({
    did: ['created the schedule backup'],
    quote: 'make backup',
  });
  expect(didOf(entry('schedule.miss', { detail: { name: 'backup' } }))).toBe(
    'the schedule backup was due and did not run',
  );
  expect(wordsOf(entry('approval.sign', { detail: { command: 'reboot' } }))).toEqual({
    did: ['signed a command that waits'],
    quote: 'reboot',
  });
  expect(didOf(entry('approval.unknown'))).toBe('approval.unknown');
});

test('a command is quoted when it starts, and its end says how', () => {
  const server = { server_name: 'web-1' };

  expect(wordsOf(entry('command.run', { ...server, outcome: 'started', detail: { command: 'uptime' } }))).toEqual({
    did: ['ran a command on ', ['server', 'web-1']],
    quote: 'uptime',
  });
  expect(wordsOf(entry('command.run', { ...server, detail: { exit_code: 2, duration_ms: 12 } }))).toEqual({
    did: ['a command ended on ', ['server', 'web-1']],
    more: 'exit code 2 after 12 ms',
  });
});

test('a change says what was changed, and to what where that is short', () => {
  const detail = { name: { from: 'a', to: 'web-1' }, tags: { to: ['x', 'y'] }, settings: 'replaced' };

  expect(wordsOf(entry('server.update', { server_name: 'web-1', detail }))).toEqual({
    did: ['changed the server ', ['server', 'web-1']],
    more: 'name: web-1, tags: x, y, settings',
  });
});

test('thresholds and silences say what they are for', () => {
  const all = { server_id: null, tag: null };

  expect(didOf(entry('threshold.create', { detail: { ...all, metric_type: 'cpu' } }))).toBe(
    'added an alert rule on CPU for all servers',
  );
  expect(wordsOf(entry('silence.delete', { detail: { ...all, tag: 'lab', reason: 'disks' } }))).toEqual({
    did: ['deleted a silence for servers tagged lab'],
    more: 'disks',
  });
});

test.each([
  ['container.stop', 'stopped the container web on docker-1'],
  ['container.restart', 'restarted the container web on docker-1'],
  ['container.pause', 'paused the container web on docker-1'],
  ['container.unpause', 'resumed the container web on docker-1'],
])('%s', (action, words) => {
  expect(didOf(entry(action, { server_name: 'docker-1', detail: { name: 'web' } }))).toBe(words);
});

test('a container without a known name has its short id, and one that was named its whole name', () => {
  const did = (target: string) => didOf(entry('container.stop', { server_name: 'docker-1', target, detail: {} }));

  expect(did('f0e1d2c3'.repeat(8))).toBe('stopped the container f0e1d2c3f0e1 on docker-1');
  expect(did('payments-reconciliation')).toBe('stopped the container payments-reconciliation on docker-1');
});

test('a recorded terminal has its hash, and each read of it an entry of its own', () => {
  const recorded = entry('terminal.recorded', { server_name: 'web-1', detail: { sha256: 'c0ffee' } });

  expect(wordsOf(recorded)).toEqual({
    did: ['was recorded in a terminal on ', ['server', 'web-1']],
    more: 'c0ffee',
  });
  expect(didOf(entry('terminal.replay', { server_name: 'web-1' }))).toBe('read the recording of a terminal on web-1');
});

test('a terminal that was kept says when its connection was lost and when it was resumed', () => {
  expect(didOf(entry('terminal.detach', { server_name: 'web-1' }))).toBe('lost the connection to a terminal on web-1');
  expect(didOf(entry('terminal.resume', { server_name: 'web-1' }))).toBe('resumed a terminal on web-1');
});

test('each means of a sign-in has words', () => {
  expect(wordsOf(entry('login', { detail: { means: 'password' } }))).toEqual({ did: ['signed in'] });
  expect(wordsOf(entry('login', { detail: { means: 'passkey' } })).more).toBe('with a passkey');
  expect(wordsOf(entry('session.prove', { detail: { means: 'otp' } })).did).toEqual(['confirmed their identity']);
});

test('a rollout of the agent is named by its version, and what became of a server with the reason', () => {
  const of = (action: string, more: Partial<AuditEntry> = {}) =>
    wordsOf(entry(action, { server_name: 'web-1', ...more, detail: { version: '1.4.0', ...more.detail } }));

  expect(didOf(entry('rollout.create', { detail: { version: '1.4.0', servers: 2 } }))).toBe(
    'started the rollout of the agent 1.4.0 to 2 servers',
  );
  expect(of('rollout.cancel')).toEqual({ did: ['cancelled the rollout of the agent 1.4.0'] });
  expect(of('rollout.end', { outcome: 'failed', detail: { reason: '1 server failed' } }).more).toBe('1 server failed');
  expect(of('agent.update').did).toEqual(['updated the agent of ', ['server', 'web-1'], ' to 1.4.0']);
  expect(of('agent.update', { outcome: 'refused', detail: { reason: 'not_newer' } })).toEqual({
    did: ['tried to update the agent of ', ['server', 'web-1'], ' to 1.4.0'],
    more: 'not newer',
  });
});

test('an action that is not known is shown by its name', () => {
  expect(didOf(entry('rocket.launch'))).toBe('rocket.launch');
});

test('outcomes are words', () => {
  expect(outcomeWords('ok').tone).toBe('ok');
  expect(outcomeWords('failed: agent_offline')).toEqual({ label: 'failed: agent offline', tone: 'bad' });
  expect(outcomeWords('refused').tone).toBe('warn');
});

test('groups are the beginnings of actions', () => {
  expect(new Set(GROUPS.map((group) => group.prefix)).size).toBe(GROUPS.length);
});
