import { describe, expect, it } from 'vitest';
import { Rows } from './rows';

/** What a list of heights says, without a tree. */
function check(rows: Rows) {
  let top = 0;
  for (let row = rows.first; row < rows.end; row += 1) {
    expect(rows.top(row)).toBe(top);
    expect(rows.at(top)).toBe(row);
    expect(rows.at(top + rows.height(row) - 1)).toBe(row);
    top += rows.height(row);
  }
  expect(rows.total).toBe(top);
  expect(rows.top(rows.end)).toBe(top);
}

describe('Rows', () => {
  it('knows where each row lies, also when the ring has gone round', () => {
    for (const capacity of [1, 2, 7, 8, 13]) {
      const rows = new Rows(capacity);
      for (let number = 0; number < 40; number += 1) {
        rows.push(number, 20 * (1 + (number % 3)));
        check(rows);
      }
      expect(rows.count).toBe(capacity);
    }
  });

  it('takes measured heights', () => {
    const rows = new Rows(10);
    for (let number = 0; number < 15; number += 1) rows.push(number, 20);
    rows.setHeight(6, 60);
    rows.setHeight(2, 999);
    check(rows);
    expect(rows.total).toBe(240);
  });

  it('stays at the ends beyond them', () => {
    const rows = new Rows(4);
    expect(rows.at(100)).toBe(0);
    for (let number = 0; number < 6; number += 1) rows.push(number, 10);
    expect(rows.at(-50)).toBe(2);
    expect(rows.at(9_999)).toBe(5);
  });

  it('finds the row of a line, or of the next that is shown', () => {
    const rows = new Rows(10);
    for (const number of [3, 8, 20]) rows.push(number, 10);
    expect([0, 3, 4, 8, 20, 21].map((number) => rows.rowOf(number))).toEqual([0, 0, 1, 1, 2, 3]);
  });

  it('drops rows before a line', () => {
    const rows = new Rows(10);
    for (const number of [3, 8, 20]) rows.push(number, 10);
    rows.dropBefore(8);
    check(rows);
    expect(rows.number(rows.first)).toBe(8);
  });
});
