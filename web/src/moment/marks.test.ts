// @vitest-environment jsdom
import { expect, test } from 'vitest';
import type { StoredEvent } from '../api/types';
import { marksOfServer } from './marks';
import { alertThen, AROUND, eventThen, SECONDS } from './testing';

test('the alerts and events of a span are marks, the newest first, and those beyond it are not', () => {
  const alert = alertThen({ resolved_at: '2026-11-21T09:00:00.000Z' });
  const event = (id: string, time: number, kind: string, detail: StoredEvent['detail'] = {}) =>
    eventThen(id, kind, { at: new Date(time * 1000).toISOString(), detail });
  const events = [
    event('e2', SECONDS + 60, 'deploy', { text: 'Shop', version: '2.14.0' }),
    event('e1', SECONDS - 60, 'reboot'),
    event('e0', SECONDS - 9_000, 'reboot'),
  ];

  const marks = marksOfServer({ alerts: [alert], events }, AROUND, 'db-1', 'u');

  expect(marks.map(({ title, kind }) => [title, kind])).toEqual([
    ['Deployed Shop, 2.14.0', 'deploy'],
    ['CPU above 90 %', 'alert'],
    ['Machine restarted', 'restart'],
  ]);
});
