import { expect, test } from 'vitest';
import type { Alert } from '../api/types';
import { isShownAt, Newcomers } from './newcomers';

const alert = (id: string, changes: Partial<Alert> = {}) =>
  ({ id, server_id: 's', status: 'active', silenced: false, severity: 'warning', ...changes }) as Alert;
const ids = (alerts: Alert[]) => alerts.map(({ id }) => id);

test('what was open before is no news, what opens later is, once', () => {
  const newcomers = new Newcomers();

  expect(ids(newcomers.take([alert('a')]))).toEqual([]);
  expect(ids(newcomers.take([alert('a'), alert('b')]))).toEqual(['b']);
  expect(ids(newcomers.take([alert('a'), alert('b', { peak_value: 99 })]))).toEqual([]);
});

test('what opened while the connection was lost is news', () => {
  const newcomers = new Newcomers();
  newcomers.take([alert('a')]);

  expect(ids(newcomers.take([alert('c'), alert('d')]))).toEqual(['c', 'd']);
});

test('what is silenced, or somebody has acknowledged, is no news', () => {
  const newcomers = new Newcomers();
  newcomers.take([]);

  expect(newcomers.take([alert('a', { silenced: true }), alert('b', { status: 'acknowledged' })])).toEqual([]);
});

test('a page that lists alerts shows a new one by itself', () => {
  const one = alert('a', { server_id: '7' });
  for (const path of ['/', '/servers', '/alerts', '/alerts/a', '/servers/7/alerts'])
    expect(isShownAt(path, one), path).toBe(true);
  for (const path of ['/run', '/alerts/b', '/servers/7', '/servers/8/alerts', '/account'])
    expect(isShownAt(path, one), path).toBe(false);
});
