import { expect, it } from 'vitest';
import { toggled, type Line } from './lines';

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
