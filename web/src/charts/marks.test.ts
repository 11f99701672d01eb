import { expect, it } from 'vitest';
import { clusters, keyOf, marksNear, thinned, type Mark } from './marks';

const mark = (id: string, at: number, tone: Mark['tone'] = 'ok'): Mark => ({ id, at, kind: 'alert', tone, title: id });

it('finds the marks near a time, the nearest first', () => {
  const marks = [mark('a', 10), mark('b', 14), mark('c', 30)];

  expect(marksNear(marks, 13, 5).map((one) => one.id)).toEqual(['b', 'a']);
});

it('draws one line where there is room for one: the worst', () => {
  const marks = [mark('c', 30), mark('a', 10), mark('b', 14, 'bad')];

  expect(thinned(marks, 5).map((one) => [one.id, one.at])).toEqual([
    ['b', 10],
    ['c', 30],
  ]);
});

it('draws one sign for what stands together, with all of it in the order of time', () => {
  const marks = [mark('c', 30), mark('b', 14, 'bad'), mark('a', 10), mark('gone', 99)];

  const found = clusters(marks, 0, 50, 5);

  expect(found.map((one) => [one.at, one.shown.id, one.marks.map((each) => each.id)])).toEqual([
    [10, 'b', ['a', 'b']],
    [30, 'c', ['c']],
  ]);
});

it('knows a sign by the mark that is pointed at, whatever joins it', () => {
  const [alone] = clusters([mark('b', 14)], 0, 50, 5);
  const [joined] = clusters([mark('b', 14), mark('a', 10, 'bad')], 0, 50, 5);

  expect([alone, joined].map((one) => one && keyOf(one, ['gone', 'b']))).toEqual(['b', 'b']);
  expect(joined && keyOf(joined, [null, null])).toBe('a');
});
