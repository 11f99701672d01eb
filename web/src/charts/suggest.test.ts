import { expect, it } from 'vitest';
import { suggested } from './suggest';

const many = (value: number, count = 100) => Array.from({ length: count }, () => value);

it('suggests what 99 of 100 values are below, and a margin', () => {
  const values = Array.from({ length: 1_000 }, (_, place) => place / 20);

  expect(suggested([values], 'percent')).toEqual({ value: 55, usual: 49.45 });
});

it('is not moved by a rare peak', () => {
  expect(suggested([[...many(10, 999), 100]], 'percent')?.usual).toBe(10);
});

it('takes the worst of several at each time', () => {
  expect(suggested([many(10), many(40), many(20)], 'percent')?.usual).toBe(40);
  expect(
    suggested(
      [
        [...many(10), null],
        [...many(5), null],
      ],
      'percent',
    )?.usual,
  ).toBe(10);
});

it('suggests no share that cannot be exceeded', () => {
  expect(suggested([many(93)], 'percent')?.value).toBe(95);
  expect(suggested([many(97)], 'percent')?.value).toBe(98);
  expect(suggested([many(100)], 'percent')?.value).toBe(99);
});

it('suggests round numbers of any size, and nothing of too few values', () => {
  expect(suggested([many(1_234_567)], 'bytes_per_second')?.value).toBe(1_400_000);
  expect(suggested([many(0.123)], 'count')?.value).toBe(0.14);
  expect(suggested([many(0)], 'count')?.value).toBe(1);
  expect(suggested([many(5, 19)], 'count')).toBeNull();
  expect(suggested([], 'count')).toBeNull();
});
