// @vitest-environment jsdom
import { expect, it, vi } from 'vitest';
import type { StoredEvent } from '../../api/types';
import { alertThen, AROUND, AT, eventThen } from '../../moment/testing';
import { marksOf } from './marks';

vi.hoisted(() => {
  globalThis.matchMedia = () => ({ matches: false, addEventListener: () => undefined }) as unknown as MediaQueryList;
});

const SERVERS: Record<string, { name: string; tags: string[] }> = {
  s1: { name: 'db-1', tags: ['db'] },
  s2: { name: 'web-1', tags: ['web'] },
};

const event = (id: string, server_id: string, kind: string, detail: StoredEvent['detail'] = {}) =>
  eventThen(id, kind, { server_id, detail });
const alert = alertThen();
const died = { action: 'die', name: 'shop', exit_code: 1, timestamp: AT };
const events = [
  event('e1', 's1', 'reboot'),
  event('e2', 's2', 'deploy', { text: 'Shop' }),
  event('e3', 's2', 'container', died),
  event('e4', 's2', 'container', { ...died, action: 'oom' }),
];

const titles = (servers: string[], tag: string | null = null) =>
  marksOf({ alerts: [alert], events }, { servers, tag }, AROUND, (id) => SERVERS[id], 'u').map((mark) => mark.title);

it('marks the events of all servers, each with the name of its server, and no containers that come and go', () => {
  expect(titles([]).sort()).toEqual([
    'db-1: CPU above 90 %',
    'db-1: Machine restarted',
    'web-1: Deployed Shop',
    'web-1: shop ran out of memory',
  ]);
});

it('marks those of the servers that a chart is of, and of one server all of them', () => {
  expect(titles(['s2']).sort()).toEqual(['Deployed Shop', 'shop ended with 1', 'shop ran out of memory']);
  expect(titles([], 'db').sort()).toEqual(['db-1: CPU above 90 %', 'db-1: Machine restarted']);
});

it('has two marks of the same event of two servers', () => {
  const both = ['s1', 's2'].map((id) => event(`c ${id}`, id, 'container', { ...died, action: 'oom' }));
  const marks = marksOf({ alerts: [], events: both }, { servers: [], tag: null }, AROUND, (id) => SERVERS[id], 'u');

  expect(new Set(marks.map(({ id }) => id)).size).toBe(2);
});

it('calls no server deleted before the servers are known, and leaves those of a tag until then', () => {
  const early = (tag: string | null) =>
    marksOf({ alerts: [alert], events }, { servers: [], tag }, AROUND, null, 'u').map((mark) => mark.title);

  expect(early(null).sort()).toEqual([
    '…: CPU above 90 %',
    '…: Deployed Shop',
    '…: Machine restarted',
    '…: shop ran out of memory',
  ]);
  expect(early('db')).toEqual([]);
});
