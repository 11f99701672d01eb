import { expect, test } from 'vitest';
import type { UpdatableServer } from '../../../api/types';
import { bodyOf, faultsOf, isFaulty, reachOf, sorted, type Input } from './plan';

const server = (name: string, more: Partial<UpdatableServer> = {}): UpdatableServer => ({
  server_id: `id-${name}`,
  name,
  version: '1.3.0',
  arch: 'x86_64',
  status: 'online',
  updates: 'signed',
  failed_update: null,
  is_current: false,
  ...more,
});

const input = (more: Partial<Input> = {}): Input => ({
  waves: [['canary']],
  others: true,
  pauseMinutes: 30,
  maxFailed: 0,
  ...more,
});

const names = (servers: readonly { name: string }[]) => servers.map(({ name }) => name);

test('servers are sorted by what a rollout does to them', () => {
  const all = [
    server('takes'),
    server('away', { status: 'offline' }),
    server('off', { updates: 'off' }),
    server('current', { is_current: true }),
    server('current-and-off', { is_current: true, updates: 'off' }),
    server('new', { version: null, arch: null, status: 'pending', updates: 'off' }),
  ];

  const { takes, current, off, unknown } = sorted(all);

  expect([takes, current, off, unknown].map(names)).toEqual([
    ['takes', 'away'],
    ['current', 'current-and-off'],
    ['off'],
    ['new'],
  ]);
});

test('a server belongs to the first wave with one of its tags', () => {
  const servers = [
    { name: 'a', tags: ['web', 'canary'] },
    { name: 'b', tags: ['eu', 'db'] },
    { name: 'c', tags: [] },
  ];
  const reach = (waves: string[][], others: boolean) => {
    const { waves: reached, rest } = reachOf(waves, servers, ({ tags }) => tags, others);
    return { waves: reached.map(names), rest: names(rest) };
  };

  expect(reach([['canary'], ['db', 'web']], true)).toEqual({ waves: [['a'], ['b'], ['c']], rest: [] });
  expect(reach([['canary'], ['db', 'web']], false)).toEqual({ waves: [['a'], ['b']], rest: ['c'] });
  expect(reach([], true)).toEqual({ waves: [['a', 'b', 'c']], rest: [] });
  expect(reach([[]], false)).toEqual({ waves: [[]], rest: ['a', 'b', 'c'] });
});

test('what is wrong is said at its field', () => {
  expect(isFaulty(faultsOf(input()))).toBe(false);
  expect(isFaulty(faultsOf(input({ pauseMinutes: 0, maxFailed: 1_000 })))).toBe(false);

  expect(faultsOf(input({ waves: [['canary'], []] })).waves).toEqual([null, 'Choose a tag, or remove this wave.']);
  const many = Array.from({ length: 21 }, (_, index) => `t${index}`);
  expect(faultsOf(input({ waves: [many] })).waves).toEqual(['A wave has at most 20 tags.']);
  expect(faultsOf(input({ waves: [], others: false })).list).toBe('Add a wave.');
  for (const pauseMinutes of [undefined, null, -1, 1.5, 10_081])
    expect(faultsOf(input({ pauseMinutes })).pause).toBe('Enter 0 to 10,080 whole minutes.');
  for (const maxFailed of [undefined, null, -1, 0.5, 1_001])
    expect(faultsOf(input({ maxFailed })).failed).toBe('Enter a whole number from 0 to 1,000.');
});

test('what is sent has all others as a wave without tags', () => {
  expect(bodyOf(input())).toEqual({ waves: [{ tags: ['canary'] }, { tags: [] }], pause_minutes: 30, max_failed: 0 });
  expect(bodyOf(input({ others: false })).waves).toEqual([{ tags: ['canary'] }]);
});
