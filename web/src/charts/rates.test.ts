import { expect, it } from 'vitest';
import { Rates } from './rates';

it('tells what came in a second', () => {
  const rates = new Rates();

  expect(rates.of('in', 1000, 10, 5)).toBeNull();
  expect(rates.of('in', 2000, 15, 5)).toBe(200);
});

it('returns no rate where a counter was reset, and continues from there', () => {
  const rates = new Rates();
  rates.of('in', 1000, 10, 5);

  expect(rates.of('in', 40, 15, 5)).toBeNull();
  expect(rates.of('in', 90, 20, 5)).toBe(10);
});

it('tells nothing over a gap', () => {
  const rates = new Rates();
  rates.of('in', 0, 10, 5);

  expect(rates.of('in', 1000, 26, 5)).toBeNull();
  expect(rates.of('in', 1050, 31, 5)).toBe(10);
});

it('learns a longer distance from the second time on', () => {
  const rates = new Rates();
  rates.of('in', 0, 0, 1);

  expect(rates.of('in', 600, 60, 1)).toBeNull();
  expect(rates.of('in', 1200, 120, 1)).toBe(10);
});

it('keeps counters apart, and leaves readings of before aside', () => {
  const rates = new Rates();
  rates.of('in', 0, 10, 5);
  rates.of('out', 500, 10, 5);

  expect(rates.of('in', 50, 15, 5)).toBe(10);
  expect(rates.of('in', 20, 12, 5)).toBeNull();
  expect(rates.of('out', 500, 15, 5)).toBe(0);
});

it('forgets what is not read any more', () => {
  const rates = new Rates();
  rates.of('in', 0, 10, 5);
  rates.forgetBefore(11);

  expect(rates.of('in', 50, 15, 5)).toBeNull();
});
