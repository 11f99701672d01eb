import { describe, expect, it } from 'vitest';
import { bytes, duration, list, percent, rate, shortPercent, whole, wholeDuration } from './format';

describe('bytes', () => {
  it.each([
    [0, '0 B'],
    [1023, '1,023 B'],
    [1024, '1.00 KiB'],
    [1023.6 * 1024, '1.00 MiB'],
    [1.5 * 1024 ** 3, '1.50 GiB'],
    [-2048, '−2.00 KiB'],
    [3 * 1024 ** 6, '3,072 PiB'],
  ])('%d is %s', (value, text) => {
    expect(bytes(value)).toBe(text);
  });

  it('that are not known are a dash', () => {
    expect([bytes(null), bytes(Number.NaN), rate(undefined), percent(null)]).toEqual(['–', '–', '–', '–']);
  });
});

describe('a duration', () => {
  it.each([
    [850, '850 ms'],
    [1_000, '1.0 s'],
    [9_999, '9.9 s'],
    [10_000, '10 s'],
    [60_000, '1 min'],
    [725_000, '12 min 5 s'],
    [3_600_000, '1 h'],
    [86_400_000 * 3 + 4 * 3_600_000 + 59_000, '3 d 4 h'],
  ])('of %d ms is %s', (ms, text) => {
    expect(duration(ms)).toBe(text);
  });
});

it('a whole number is what its text says', () => {
  expect([whole(12.49), whole(99.5), whole(null), whole(Number.NaN)]).toEqual([12, 100, null, null]);
  for (const value of [0.49, 0.5, 1.5, 2.5, 94.5, 99.51]) expect(percent(whole(value))).toBe(percent(value));
});

it('a share has as many digits as it needs', () => {
  expect([shortPercent(90, 1), shortPercent(92.5, 1), shortPercent(0.01, 2)]).toEqual(['90 %', '92.5 %', '0.01 %']);
});

it('a whole duration is written in one unit', () => {
  expect([90, 900, 86_400, 7 * 86_400, 365 * 86_400].map(wholeDuration)).toEqual([
    '90 s',
    '15 min',
    '24 h',
    '7 d',
    '1 y',
  ]);
});

it('a list is written as a sentence has it', () => {
  expect([list(['a']), list(['a', 'b']), list(['a', 'b'], 'disjunction')]).toEqual(['a', 'a and b', 'a or b']);
});
