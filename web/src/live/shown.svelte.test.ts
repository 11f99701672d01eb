// @vitest-environment jsdom
import { flushSync } from 'svelte';
import { afterEach, expect, it, vi } from 'vitest';
import { Row, type Reading } from './fleet.svelte';
import { Shown } from './shown.svelte';
import type { Server } from '../api/types';

afterEach(() => void vi.restoreAllMocks());

const reading = (cpu_percent: number, status: Reading['status'] = 'online') =>
  ({ server_id: 'one', status, cpu_percent, timestamp: null, last_seen_at: null }) as Reading;

it('numbers change when their turn has come, at once with the last of them, and not out of sight', () => {
  let now = 1_000_000;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  const row = new Row({ id: 'one', status: 'online' } as Server);
  const seen: (number | null)[] = [];
  const take = (next: Reading, afterMs: number) => {
    now += afterMs;
    row.take(next, 0, 0);
    flushSync();
  };
  let shown!: Shown;
  const end = $effect.root(() => {
    shown = new Shown(row);
    shown.isSeen = true;
    $effect(() => void seen.push(shown.cpu));
  });
  flushSync();

  take(reading(1), 0);
  take(reading(2), 500);
  take(reading(3), 500);
  expect(seen).toEqual([null, 1]);
  take(reading(4), 1_000);
  expect(seen).toEqual([null, 1, 4]);
  // The last one at once; and out of sight nothing.
  take(reading(5, 'offline'), 100);
  expect(seen).toEqual([null, 1, 4, 5]);
  shown.isSeen = false;
  take(reading(6), 5_000);
  expect(seen).toEqual([null, 1, 4, 5]);
  shown.isSeen = true;
  flushSync();
  expect(seen).toEqual([null, 1, 4, 5, 6]);

  end();
  take(reading(7), 5_000);
  expect(shown.cpu).toBe(6);
});
