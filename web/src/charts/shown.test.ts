import { expect, it } from 'vitest';
import type { Line } from './lines';
import { saidOf, shownAt, summaries } from './shown';

const times = [10, 20, 30];
const line: Line = {
  name: 'cpu_percent',
  label: 'all cores',
  colour: '--series-1',
  column: { avg: [50, null, 30], min: [40, null, 30], max: [60, null, 30] },
  hasBand: true,
};

it('shows the newest values while the cursor is away', () => {
  expect(shownAt([line], times, null, 5)).toEqual([{ value: 30, edge: null }]);
});

it('shows what is at the cursor, with the least and the greatest of a mean', () => {
  expect(shownAt([line], times, 11, 5)).toEqual([{ value: 50, edge: { least: 40, most: 60 } }]);
  expect(shownAt([line], times, 30, 5)).toEqual([{ value: 30, edge: null }]);
});

it('shows nothing in a gap and far from all points', () => {
  expect(shownAt([line], times, 20, 5)).toEqual([{ value: null, edge: null }]);
  expect(shownAt([line], times, 90, 5)).toEqual([{ value: null, edge: null }]);
});

it('says it in words', () => {
  expect(saidOf([line], shownAt([line], times, 10, 5), 'percent')).toBe('all cores 50 %');
  expect(summaries([line], times, { from: 0, to: 40 }, 'percent')).toBe(
    'all cores: last 30 %, lowest 30 %, highest 60 %.',
  );
});
