import { expect, it } from 'vitest';
import { marksNear, thinned, type Mark } from './marks';

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
