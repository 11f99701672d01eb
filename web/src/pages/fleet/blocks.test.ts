import { expect, test } from 'vitest';
import { chunked, columnsOf } from './blocks';

test('as many cards stand side by side as have room, and one always', () => {
  expect([0, 299, 615, 616, 931, 932, 1632].map(columnsOf)).toEqual([1, 1, 1, 2, 2, 3, 5]);
});

test('blocks have all that there is, in order', () => {
  expect(chunked([1, 2, 3, 4, 5], 2)).toEqual([[1, 2], [3, 4], [5]]);
  expect(chunked([], 2)).toEqual([]);
});
