import { expect, it } from 'vitest';
import { delay, RESTARTING } from './backoff';

it('waits longer each time, half a minute at most', () => {
  expect(delay(0, 1006, 0.999)).toBeLessThan(1_000);
  expect(delay(3, 1006, 0.999)).toBeGreaterThan(3_500);
  expect(delay(60, 1006, 0.999)).toBeLessThanOrEqual(30_250);
});

it('is spread over the whole wait, so that pages do not come back together', () => {
  expect(delay(10, 1006, 0)).toBe(250);
  expect(delay(10, 1006, 0.5)).toBe(15_250);
});

it('is soon back after a restart that was announced', () => {
  expect(delay(1, RESTARTING, 0.999)).toBeLessThan(3_500);
  expect(delay(5, RESTARTING, 0.999)).toBeGreaterThan(10_000);
});
