import { describe, expect, test } from 'vitest';
import { columnsOf, numbersOf, spanOf } from './span';

describe('a list in a window', () => {
  test('builds the lines that are near it, however many there are', () => {
    for (const lines of [200, 10_000, 1_000_000]) {
      const { first, end } = spanOf(-4_000, 900, lines, 40);

      expect(first * 40).toBeLessThanOrEqual(4_000 - 400);
      expect(end * 40).toBeGreaterThanOrEqual(4_900 + 400);
      expect(end - first).toBeLessThan(60);
    }
  });

  test('builds the same lines for a scroll of a few pixels', () => {
    expect(spanOf(-4_010, 900, 500, 40)).toEqual(spanOf(-4_001, 900, 500, 40));
  });

  test('has no lines that there are not', () => {
    expect(spanOf(200, 900, 3, 40)).toEqual({ first: 0, end: 3 });
    expect(spanOf(0, 900, 0, 40)).toEqual({ first: 0, end: 0 });
    // Scrolled past it, and not yet come to it.
    expect(spanOf(-9_000, 900, 10, 40)).toEqual({ first: 10, end: 10 });
    expect(spanOf(9_000, 900, 10, 40)).toEqual({ first: 0, end: 0 });
  });

  test('keeps what has the focus', () => {
    expect(numbersOf({ first: 4, end: 7 }, [])).toEqual([4, 5, 6]);
    expect(numbersOf({ first: 4, end: 7 }, [5])).toEqual([4, 5, 6]);
    expect(numbersOf({ first: 4, end: 7 }, [90, 1])).toEqual([1, 4, 5, 6, 90]);
  });
});

test('as many cards stand side by side as there is room for', () => {
  expect([0, 299, 611, 612, 924].map(columnsOf)).toEqual([1, 1, 1, 2, 3]);
});
