// @vitest-environment jsdom
import { expect, test } from 'vitest';
import { inTurn } from './turn';

/** Locks as a browser has them, as far as they are used. */
function someLocks(): LockManager {
  let last: Promise<unknown> = Promise.resolve();
  const request = (_: string, work: () => Promise<unknown>): Promise<unknown> => {
    const done = last.then(work);
    last = done.catch(() => undefined);
    return done;
  };
  return { request } as unknown as LockManager;
}

test('one after the other, also past one that failed', async () => {
  const locks = someLocks();
  const told: string[] = [];
  const tab = (name: string, fails = false) =>
    inTurn(async () => {
      told.push(`${name} begins`);
      await Promise.resolve();
      told.push(`${name} ends`);
      if (fails) throw new Error(name);
      return name;
    }, locks);

  const outcomes = await Promise.allSettled([tab('one', true), tab('two')]);

  expect(told).toEqual(['one begins', 'one ends', 'two begins', 'two ends']);
  expect(outcomes[0]?.status).toBe('rejected');
  expect(outcomes[1]).toEqual({ status: 'fulfilled', value: 'two' });
});

test('without locks at once', async () => {
  expect(await inTurn(async (signal) => signal.aborted, undefined)).toBe(false);
});
