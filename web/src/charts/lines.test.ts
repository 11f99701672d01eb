import { expect, it } from 'vitest';
import { peaked, toggled, type Line } from './lines';

const line = (name: string): Line => ({ name, label: name, colour: '', column: { avg: [], min: [], max: [] } });
const lines = [line('a'), line('b'), line('c')];

it('a line is hidden and shown again', () => {
  const hidden = toggled(new Set(), lines, 'a', false);

  expect([...hidden]).toEqual(['a']);
  expect([...toggled(hidden, lines, 'a', false)]).toEqual([]);
});

it('a line is seen alone, and then all are', () => {
  const hidden = toggled(new Set(['b']), lines, 'a', true);

  expect([...hidden]).toEqual(['b', 'c']);
  expect([...toggled(hidden, lines, 'a', true)]).toEqual([]);
});

it('lines of peaks have the greatest values, in the same arrays, so that live samples are added to both', () => {
  const given = { ...line('a'), column: { avg: [2], min: [1], max: [9] } };
  const [shown] = peaked([given]);
  given.column.max.push(7);

  expect(shown?.column).toEqual({ avg: [9, 7], min: [1], max: [9, 7] });
  expect(shown?.isPeak).toBe(true);
  expect(given.column.avg).toEqual([2]);
});
