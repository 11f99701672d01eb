import { expect, it } from 'vitest';
import { keysOf, moved, nextWidth, placed, resized } from './layout';

const panel = (view_id: string, width = 6, height = 1) => ({ view_id, width, height });
const ids = (panels: { view_id: string }[]) => panels.map((one) => one.view_id).join('');

it('places views in rows of twelve columns', () => {
  const { places, rows } = placed([panel('a', 8, 2), panel('b', 4), panel('c', 6), panel('d', 8)]);

  expect(places.map(({ x, y }) => [x, y])).toEqual([
    [0, 0],
    [8, 0],
    [0, 2],
    [0, 3],
  ]);
  expect(rows).toBe(4);
  expect(placed([]).rows).toBe(0);
});

it('moves a view, and never beyond the others', () => {
  const three = [panel('a'), panel('b'), panel('c')];

  expect(ids(moved(three, 0, 2))).toBe('bca');
  expect(ids(moved(three, 2, 0))).toBe('cab');
  expect(ids(moved(three, 1, 9))).toBe('acb');
  expect(ids(moved(three, 9, 0))).toBe('abc');
  expect(ids(three)).toBe('abc');
});

it('names each of two alike', () => {
  expect(keysOf([panel('a'), panel('b'), panel('a')])).toEqual(['a 1', 'b 1', 'a 2']);
});

it('knows the widths', () => {
  expect([nextWidth(6, 1), nextWidth(12, 1), nextWidth(5, -1), nextWidth(3, -1)]).toEqual([8, 12, 4, 3]);
  expect(resized([panel('a'), panel('b')], 1, { width: 12 })).toEqual([panel('a'), panel('b', 12)]);
});
