// @vitest-environment jsdom
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Approval } from '../../../api/types';
import { clock } from '../../../live/clock.svelte';
import { followed, polledApproval } from './approval';

const BEGAN = Date.parse('2026-11-26T10:00:00Z');
const asked = vi.hoisted(() => ({ count: 0 }));

vi.mock('../../../api/client', () => ({
  api: { GET: () => undefined },
  take: () => {
    asked.count += 1;
    return Promise.resolve({ status: 'approved', ended_at: '2026-11-26T10:00:00Z' });
  },
}));

beforeEach(() => {
  // This browser's clock is a day ahead of the service's.
  vi.useFakeTimers({ now: BEGAN + 86_400_000 });
  asked.count = 0;
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

it.each([
  ['is asked for again while its signatures may be refused', 30_000, 2],
  ['is settled when they were not for a minute', 61_000, 1],
])('what has begun %s, by the clock of the service', async (_, since, times) => {
  vi.spyOn(clock, 'present').mockReturnValue(BEGAN + since);

  const stop = polledApproval('a1').watch();
  await vi.advanceTimersByTimeAsync(3_500);
  stop();

  expect(asked.count).toBe(times);
});

it('who asked follows the batch, which is another one where it waited again; others follow the approval', () => {
  const first: Pick<Approval, 'id' | 'user_id' | 'batch_id'> = { id: 'a1', user_id: 'ada', batch_id: 'a1' };
  const again = { ...first, batch_id: 'b2' };

  expect(followed({ ...first, batch_id: null }, 'ada')).toBe('a1');
  expect(followed(first, 'ada')).toBe('a1');
  expect(followed(again, 'ada')).toBe('b2');
  expect(followed(again, 'ben')).toBe('a1');
});
