import { describe, expect, test } from 'vitest';
import type { Server, ServerStatus } from '../../api/types';
import type { Reading } from '../../live/fleet.svelte';
import { POINT_MS, POINTS, Stack, totalsOf, worstOf, type Counted } from './totals';

function row(id: string, reading: Partial<Reading> | null, cores = 4, status: ServerStatus = 'online'): Counted {
  const server = { id, name: id, agent: { cpu_count: cores } } as Server;
  const none = { cpu_percent: null, memory_percent: null, disk_percent: null, network_in: null, network_out: null };
  return { id, server, status, reading: reading && ({ ...none, ...reading } as Reading) };
}

describe('all servers together', () => {
  test('have the cores, the use and the traffic of those that are online', () => {
    const rows = [
      row('a', { cpu_percent: 10, memory_percent: 50, network_in: 100, network_out: 10 }, 12),
      row('b', { cpu_percent: 90, memory_percent: 100, network_in: 1, network_out: 2 }, 4),
      row('c', { cpu_percent: 100, memory_percent: 100, network_in: 9_999 }, 64, 'offline'),
      row('d', null, 8),
    ];

    expect(
      totalsOf(
        rows,
        new Map([
          ['a', 3_000],
          ['b', 1_000],
          ['c', 7_000],
        ]),
      ),
    ).toEqual({
      servers: 4,
      online: 3,
      cores: 24,
      cpuPercent: 30,
      memoryUsed: 2_500,
      memoryTotal: 4_000,
      memoryPercent: 62.5,
      in: 101,
      out: 12,
    });
  });

  test('say nothing of what no server tells', () => {
    const { cpuPercent, memoryPercent, memoryTotal } = totalsOf([row('a', null)], new Map());

    expect([cpuPercent, memoryPercent, memoryTotal]).toEqual([null, null, null]);
    expect(totalsOf([row('a', { memory_percent: 40 })], new Map()).memoryPercent).toBe(40);
    expect(totalsOf([row('a', { memory_percent: 40 })], null).memoryPercent).toBeNull();
  });
});

test('the worst have least of anything left, and who is away is not among them', () => {
  const rows = [
    row('calm', { cpu_percent: 3, memory_percent: 20, disk_percent: 30 }),
    row('full', { cpu_percent: 3, memory_percent: 20, disk_percent: 97 }),
    row('busy', { cpu_percent: 99, memory_percent: 20, disk_percent: 30 }),
    row('gone', { cpu_percent: 100 }, 4, 'offline'),
    row('silent', null),
    row('large', { memory_percent: 80 }),
  ];

  const worst = worstOf(rows, 3).map(({ row, by, percent }) => [row.id, by, percent]);

  expect(worst).toEqual([
    ['busy', 'cpu', 99],
    ['full', 'disk', 97],
    ['large', 'memory', 80],
  ]);
});

describe('a stacked course', () => {
  test('has one point for each stretch, and forgets what is older than it is wide', () => {
    const stack = new Stack();
    for (let at = 0; at < 3 * POINTS * POINT_MS; at += 1_000) stack.add(at, 1, 1);

    expect(stack.length).toBe(POINTS);
  });

  test('is not shown before a minute is known', () => {
    const stack = new Stack();
    stack.add(0, 1, 1);

    expect(stack.paths(11 * POINT_MS)).toBeNull();
    expect(stack.paths(12 * POINT_MS)).not.toBeNull();
  });

  test('stands on the present, what went out on what came in', () => {
    const stack = new Stack();
    stack.add(0, 1, 1);
    stack.add(11 * POINT_MS, 30, 10);
    stack.add(12 * POINT_MS, 20, 0);

    const paths = stack.paths(12 * POINT_MS);

    expect(paths?.most).toBe(40);
    expect(paths?.in).toContain('M109.1 28L119 52L119 100L109.1 100Z');
    expect(paths?.out).toContain('M109.1 4L119 52L119 52L109.1 28Z');
  });

  test('is broken where nothing came', () => {
    const stack = new Stack();
    stack.add(0, 1, 1);
    stack.add(20 * POINT_MS, 1, 1);

    expect(stack.paths(20 * POINT_MS)?.in.match(/M/g)).toHaveLength(2);
  });
});
