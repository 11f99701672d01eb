import { describe, expect, it } from 'vitest';
import { bytes, duration, percent, plural, rate, whole } from './format';

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

it('one is not many', () => {
  expect([plural(1, 'server'), plural(1234, 'server'), plural(2, 'entry', 'entries')]).toEqual([
    '1 server',
    '1,234 servers',
    '2 entries',
  ]);
});

it('a whole number is what its text says', () => {
  expect([whole(12.49), whole(99.5), whole(null), whole(Number.NaN)]).toEqual([12, 100, null, null]);
  for (const value of [0.49, 0.5, 1.5, 2.5, 94.5, 99.51]) expect(percent(whole(value))).toBe(percent(value));
});
