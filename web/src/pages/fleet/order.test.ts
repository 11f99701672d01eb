import { describe, expect, test } from 'vitest';
import type { Alert, ServerStatus } from '../../api/types';
import type { Reading } from '../../live/fleet.svelte';
import type { SortKey } from './choice';
import { fits, grouped, sorted, statusCounts, tagCounts, type Listed } from './order';

const NO_READING: Reading = {
  server_id: '',
  status: 'online',
  last_seen_at: null,
  timestamp: null,
  cpu_percent: null,
  memory_percent: null,
  disk_percent: null,
  load_1: null,
  network_in: null,
  network_out: null,
  uptime_seconds: null,
  containers: null,
};

interface Given {
  host?: string;
  description?: string;
  tags?: string[];
  status?: ServerStatus;
  reading?: Partial<Reading>;
  lastSeenAt?: string;
}

function row(name: string, given: Given = {}): Listed {
  const { host = '192.0.2.1', description = '', tags = [], status = 'online', reading = {} } = given;
  const at = '2026-11-20T09:30:00.000Z';
  return {
    server: {
      id: name,
      name,
      host,
      description,
      tags,
      owner: { id: 'ada', username: 'ada' },
      role: 'owner',
      rights: [],
      port: 22,
      status,
      series_dropped: 0,
      created_at: at,
      updated_at: at,
    },
    status,
    reading: { ...NO_READING, ...reading },
    lastSeenAt: given.lastSeenAt ?? null,
  };
}

const nothing = { search: '', status: null, tags: [], of: null };

test('ones own servers, and those of others', () => {
  const own = row('web-1');
  const shared: Listed = { ...row('db-1'), server: { ...row('db-1').server, role: 'viewer' } };
  const of = (wanted: 'mine' | 'shared' | null) =>
    [own, shared].filter((one) => fits(one, { ...nothing, of: wanted })).map(({ server }) => server.name);

  expect(of('mine')).toEqual(['web-1']);
  expect(of('shared')).toEqual(['db-1']);
  expect(of(null)).toEqual(['web-1', 'db-1']);
});

describe('a search', () => {
  const web = row('web-1', { host: 'web.example.org', description: 'Shop front', tags: ['EU', 'blue'] });

  test.each(['web', 'EXAMPLE', 'shop', 'eu', '  blue  web-1 ', ''])('finds by "%s"', (search) => {
    expect(fits(web, { ...nothing, search })).toBe(true);
  });

  test.each(['web-2', 'web red', 'webexample'])('does not find by "%s"', (search) => {
    expect(fits(web, { ...nothing, search })).toBe(false);
  });
});

test('a server must have the status and all the tags', () => {
  const web = row('web', { tags: ['eu', 'blue'], status: 'offline' });

  expect(fits(web, { ...nothing, status: 'offline', tags: ['eu', 'blue'] })).toBe(true);
  expect(fits(web, { ...nothing, status: 'online' })).toBe(false);
  expect(fits(web, { ...nothing, tags: ['eu', 'green'] })).toBe(false);
});

describe('an order', () => {
  function namesBy(rows: Listed[], key: SortKey, isReversed = false, worst: Record<string, Alert['severity']> = {}) {
    const alertOf = ({ server }: Listed) => {
      const severity = worst[server.name];
      return severity && ({ severity } as Alert);
    };
    return sorted(rows, key, isReversed, (listed) => alertOf(listed) || undefined).map(({ server }) => server.name);
  }

  test('by name counts as people do', () => {
    expect(namesBy([row('web-10'), row('Web-2'), row('db')], 'name')).toEqual(['db', 'Web-2', 'web-10']);
    expect(namesBy([row('a'), row('b')], 'name', true)).toEqual(['b', 'a']);
  });

  test('by a number has the busiest first, and those without one last, either way', () => {
    const rows = [
      row('idle', { reading: { cpu_percent: 1 } }),
      row('new'),
      row('busy', { reading: { cpu_percent: 90 } }),
    ];

    expect(namesBy(rows, 'cpu')).toEqual(['busy', 'idle', 'new']);
    expect(namesBy(rows, 'cpu', true)).toEqual(['idle', 'busy', 'new']);
  });

  test('does not believe the numbers of a server that is away', () => {
    const rows = [
      row('gone', { status: 'offline', reading: { cpu_percent: 100 } }),
      row('a', { reading: { cpu_percent: 1 } }),
    ];

    expect(namesBy(rows, 'cpu')).toEqual(['a', 'gone']);
  });

  test('by status has what needs a look first', () => {
    const rows = [row('a'), row('b', { status: 'pending' }), row('c', { status: 'offline' })];

    expect(namesBy(rows, 'status')).toEqual(['c', 'b', 'a']);
  });

  test('by alerts has the worst first', () => {
    const worst = { b: 'info', c: 'critical', d: 'warning' } as const;

    expect(namesBy([row('a'), row('b'), row('c'), row('d')], 'alerts', false, worst)).toEqual(['c', 'd', 'b', 'a']);
  });

  test('by when it was last seen keeps those that are online calm', () => {
    const rows = [
      row('never', { status: 'pending' }),
      row('b', { lastSeenAt: '2026-11-20T09:30:01.000Z' }),
      row('long ago', { status: 'offline', lastSeenAt: '2026-11-01T00:00:00.000Z' }),
      row('a', { lastSeenAt: '2026-11-20T09:30:00.000Z' }),
      row('gone', { status: 'offline', lastSeenAt: '2026-11-20T00:00:00.000Z' }),
    ];

    expect(namesBy(rows, 'seen')).toEqual(['a', 'b', 'gone', 'long ago', 'never']);
  });

  test('by network adds both directions', () => {
    const rows = [
      row('one way', { reading: { network_in: 10 } }),
      row('both', { reading: { network_in: 6, network_out: 6 } }),
      row('none'),
    ];

    expect(namesBy(rows, 'network')).toEqual(['both', 'one way', 'none']);
  });
});

test('a server stands in the group of each of its tags, and those without one are last', () => {
  const groups = grouped([row('a', { tags: ['eu', 'blue'] }), row('b'), row('c', { tags: ['eu'] })]);

  expect(groups.map(({ tag, rows }) => [tag, rows.map(({ server }) => server.name)])).toEqual([
    ['blue', ['a']],
    ['eu', ['a', 'c']],
    [null, ['b']],
  ]);
});

test('tags are counted, the most used first', () => {
  expect(tagCounts([row('a', { tags: ['x', 'y'] }), row('b', { tags: ['y'] })])).toEqual([
    ['y', 2],
    ['x', 1],
  ]);
});

test('servers are counted by status', () => {
  expect(statusCounts([row('a'), row('b', { status: 'offline' }), row('c')])).toEqual([
    ['online', 2],
    ['offline', 1],
    ['pending', 0],
  ]);
});
