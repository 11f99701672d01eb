import { expect, it } from 'vitest';
import { Lines, type Line } from './lines';
import { Renumbering } from './renumbering';
import { lines as linesOf } from './testing';

it('a line is found among those that take the place of the ones held, or else the next that is still there', () => {
  const [a, b, c, d, e] = linesOf('a', 'b', 'c', 'd', 'e') as [Line, Line, Line, Line, Line];
  const held = new Lines(3);
  for (const line of [a, b, c, d]) held.push(line);

  // What is held are the numbers 1 to 3, and the first new one is 4.
  const numbers = new Renumbering(held, [e, b, d]);

  expect([0, 1, 2, 3, 4].map((number) => numbers.of(number))).toEqual([null, 5, null, 6, null]);
  expect(numbers.ofAll([1, 2, 3])).toEqual([5, 6]);
  expect([0, 1, 2, 3].map((number) => numbers.near(number))).toEqual([5, 5, 6, 6]);
  expect(new Renumbering(held, [e, b]).near(2)).toBe(6);
});
