import { expect, test } from 'vitest';
import { linesAt, timeWithin } from './linesAt';

const times = [1_000, 5_000, 5_400, null, 20_000];

test('the lines of a second are marked', () => {
  expect(linesAt(times, 5)).toEqual({ from: 1, to: 3 });
  expect(linesAt(times, 20.5)).toEqual({ from: 4, to: 5 });
});

test('between lines the last one before is marked', () => {
  expect(linesAt(times, 12)).toEqual({ from: 2, to: 3 });
});

test('nothing is marked without a cursor, and before the first line', () => {
  expect(linesAt(times, null)).toEqual({ from: 0, to: 0 });
  expect(linesAt([5_000], 1)).toEqual({ from: 0, to: 0 });
  expect(linesAt([], 1)).toEqual({ from: 0, to: 0 });
});

test('a time outside of what was read marks nothing', () => {
  const read = { from: 100, to: 200 };

  expect([99, 100, 150, 200, 201].map((at) => timeWithin(at, read))).toEqual([null, 100, 150, 200, null]);
});
