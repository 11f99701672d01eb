import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { orRepeated, REPEAT_MS } from './repeat';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const never = () => new Promise<string>(() => undefined);
const after = (ms: number, answer: string) => new Promise<string>((done) => setTimeout(() => done(answer), ms));

test('a request that is answered in time is made once', async () => {
  const repeat = vi.fn(never);

  const answer = orRepeated(after(REPEAT_MS - 1, 'first'), repeat);
  await vi.advanceTimersByTimeAsync(REPEAT_MS * 2);

  expect(await answer).toBe('first');
  expect(repeat).not.toHaveBeenCalled();
});

test('one whose answer got lost is repeated at once', async () => {
  const answer = orRepeated(Promise.reject(new TypeError('lost')), () => Promise.resolve('second'));

  expect(await answer).toBe('second');
});

test('one without an answer is repeated while the service still gives the same', async () => {
  const repeat = vi.fn(() => after(1_000, 'second'));

  const answer = orRepeated(never(), repeat);
  await vi.advanceTimersByTimeAsync(REPEAT_MS + 1_000);

  expect(REPEAT_MS).toBeLessThan(10_000);
  expect(repeat).toHaveBeenCalledTimes(1);
  expect(await answer).toBe('second');
});

test('of two the one that comes first counts, whichever fails', async () => {
  const slow = orRepeated(after(REPEAT_MS + 500, 'first'), never);
  const refused = orRepeated(after(REPEAT_MS + 500, 'first'), () => Promise.reject(new TypeError('lost')));
  await vi.advanceTimersByTimeAsync(REPEAT_MS + 500);

  expect(await slow).toBe('first');
  expect(await refused).toBe('first');
});

test('where both are lost the second one says why', async () => {
  const answer = orRepeated(Promise.reject(new Error('one')), () => Promise.reject(new Error('two')));

  await expect(answer).rejects.toThrow('two');
});
