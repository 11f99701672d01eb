import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { lookAgain } from './looks';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('looks again until there is what was looked for', async () => {
  const look = vi.fn(async () => look.mock.calls.length === 2);

  lookAgain(look);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(look).toHaveBeenCalledTimes(1);

  await vi.advanceTimersByTimeAsync(4_000);
  expect(look).toHaveBeenCalledTimes(2);

  expect(vi.getTimerCount()).toBe(0);
});

it('gives up after the third time', async () => {
  const look = vi.fn(async () => false);

  lookAgain(look);
  await vi.advanceTimersByTimeAsync(15_000);

  expect(look).toHaveBeenCalledTimes(3);
  expect(vi.getTimerCount()).toBe(0);
});

it('does not look any more once it is stopped', () => {
  const look = vi.fn(async () => false);

  lookAgain(look)();

  expect(vi.getTimerCount()).toBe(0);
});
