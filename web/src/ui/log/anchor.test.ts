import { expect, it } from 'vitest';
import { sightBy } from './anchor';
import { Rows } from './rows';

const HEIGHT = 200;

/** So many rows of 20 pixels; the first shows the line 0. */
function rowsOf(count: number, capacity = 1_000): Rows {
  const rows = new Rows(capacity);
  for (let number = 0; number < count; number += 1) rows.push(number, 20);
  return rows;
}

it('the line that is scrolled into stays, and the ends are not passed', () => {
  const rows = rowsOf(50);
  const at = (number: number, into: number) => sightBy({ number, into, isHeld: false }, rows, HEIGHT);

  expect([at(10, 5), at(0, -5), at(49, 0)]).toEqual([205, 0, 800]);
  rows.setHeight(3, 100);
  expect(at(10, 5)).toBe(285);
  // Of one that is not shown the next one takes the place.
  const others = new Rows(1_000);
  for (let number = 0; number < 50; number += 1) others.push(number * 2, 20);
  expect(sightBy({ number: 11, into: 5, isHeld: false }, others, HEIGHT)).toBe(120);
});

it('a line that was opened stays where it is, with as much of it in sight as there is room for', () => {
  const rows = rowsOf(50);
  const at = (number: number, into: number) => sightBy({ number, into, isHeld: true }, rows, HEIGHT);
  // The end is in sight.
  expect(at(45, -100)).toBe(800);

  rows.setHeight(45, 110);
  expect(at(45, -100)).toBe(810);
  rows.setHeight(45, 60);
  expect(at(45, -100)).toBe(800);
  // There is no room for all of it.
  rows.setHeight(45, 500);
  expect(at(45, -100)).toBe(900);
  expect(at(45, 70)).toBe(900);

  rows.setHeight(45, 60);
  for (let number = 50; number < 90; number += 1) rows.push(number, 20);
  expect(at(45, -100)).toBe(800);
});

it('a line that was opened stays where it is while the oldest lines leave', () => {
  const rows = rowsOf(50, 50);
  const held = { number: 45, into: -100, isHeld: true };
  expect(sightBy(held, rows, HEIGHT)).toBe(800);

  for (let number = 50; number < 60; number += 1) rows.push(number, 20);

  expect(sightBy(held, rows, HEIGHT)).toBe(600);
});
