import { expect, test } from 'vitest';
import { pathsOf } from './sparklinePath';

test('nothing is drawn of nothing', () => {
  expect(pathsOf([], 100)).toEqual({ line: '', area: '' });
});

test('values lie between the bottom and the top, and no line leaves the image', () => {
  const stretch: [number, number][] = [
    [0, -5],
    [1, 50],
    [2, 130],
  ];

  expect(pathsOf([stretch], 100)).toEqual({ line: 'M0 98L1 50L2 2', area: 'M0 100L0 98L1 50L2 2V100Z' });
});

test('stretches are not joined, and a lone value is a dot', () => {
  const { line } = pathsOf(
    [
      [
        [0, 50],
        [1, 50],
      ],
      [[7, 50]],
    ],
    100,
  );

  expect(line).toBe('M0 50L1 50M7 50h0');
});
