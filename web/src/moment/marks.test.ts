// @vitest-environment jsdom
import { expect, test } from 'vitest';
import type { Alert, StoredEvent } from '../api/types';
import { marksOfServer } from './marks';

const at = '2026-11-21T03:12:00.000Z';
const seconds = Date.parse(at) / 1000;

test('the alerts and events of a span are marks, the newest first, and those beyond it are not', () => {
  const alert = {
    id: 'a1',
    server_id: 's1',
    severity: 'critical',
    message: 'cpu is 97 % on db-1',
    triggered_at: at,
    resolved_at: '2026-11-21T09:00:00.000Z',
  } as Alert;
  const event = (id: string, time: number, kind: string, detail: StoredEvent['detail'] = {}): StoredEvent => ({
    id,
    server_id: 's1',
    kind,
    at: new Date(time * 1000).toISOString(),
    detail,
  });
  const events = [
    event('e2', seconds + 60, 'deploy', { text: 'Shop', version: '2.14.0' }),
    event('e1', seconds - 60, 'reboot'),
    event('e0', seconds - 9_000, 'reboot'),
  ];

  const marks = marksOfServer({ alerts: [alert], events }, { from: seconds - 600, to: seconds + 600 }, 'db-1', 'u');

  expect(marks.map(({ title, kind }) => [title, kind])).toEqual([
    ['Deployed Shop, 2.14.0', 'deploy'],
    ['CPU is 97 %', 'alert'],
    ['Machine restarted', 'restart'],
  ]);
});
