// @vitest-environment node
import { expect, it } from 'vitest';
import { roomFor, textThatFits } from './fit';

const character = { width: 0.6, height: 1.2 };
const fit = (columns: number, rows: number, width: number, height: number) =>
  textThatFits({ columns, rows }, { width, height }, character);

it('is as large as in a terminal where there is room', () => {
  expect(fit(80, 24, 1200, 800)).toBe(14);
});

it('becomes smaller where the terminal is wide or high', () => {
  expect(fit(100, 24, 600, 800)).toBe(10);
  // A row is rounded up to 12 px.
  expect(fit(80, 50, 1200, 600)).toBe(10);
});

it('can be read, also where the terminal has to scroll then', () => {
  expect(fit(100, 24, 300, 800)).toBe(8);
  expect(fit(1000, 1000, 0, 0)).toBe(8);
});

it('keeps room for the highest of all sizes, within the box', () => {
  const room = (...sizes: [number, number][]) =>
    roomFor(
      sizes.map(([columns, rows]) => ({ columns, rows })),
      { width: 600, height: 500 },
      character,
    );

  // 80 columns are 12.5 px, so that a row has 15 px; 100 columns are 10 px.
  expect(room([80, 24])).toBe(24 * 15);
  expect(room([100, 24], [80, 24], [100, 10])).toBe(24 * 15);
  expect(room([80, 1000])).toBe(500);
  expect(room()).toBe(0);
});
