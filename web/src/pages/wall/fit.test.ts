import { describe, expect, test } from 'vitest';
import { fit } from './fit';

const GAP = 8;

describe.each([
  ['a display', 1560, 960],
  ['an old display', 980, 640],
  ['an upright display', 1060, 1600],
  ['a phone', 370, 640],
])('on %s', (_, width, height) => {
  test.each([1, 2, 3, 7, 12, 50, 113, 300])('%i servers have a place each', (count) => {
    const { columns, rows, unit } = fit(count, width, height, GAP);

    expect(columns * rows).toBeGreaterThanOrEqual(count);
    expect(columns * (rows - 1)).toBeLessThan(count);
    expect(unit).toBeGreaterThan(0);
  });
});

test('few servers show everything, many show less, and can still be read', () => {
  const fits = [6, 60, 300].map((count) => fit(count, 1560, 960, GAP));

  expect(fits.map(({ detail }) => detail)).toEqual(['full', 'brief', 'least']);
  for (const { unit } of fits) expect(unit).toBeGreaterThan(10);
});

test('more servers never have larger letters of the same kind', () => {
  const units = new Map<string, number>();
  for (let count = 1; count <= 300; count += 1) {
    const { detail, unit } = fit(count, 1560, 960, GAP);
    expect(unit).toBeLessThanOrEqual(units.get(detail) ?? Infinity);
    units.set(detail, unit);
  }
});

test('one server does not shout', () => {
  expect(fit(1, 3840, 2160, GAP).unit).toBe(44);
});

test('a window without room is no fault', () => {
  expect(fit(12, 0, 0, GAP).unit).toBe(0);
});
