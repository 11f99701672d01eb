import { expect, it } from 'vitest';
import { breaks, firstFrom, gapsWithin, isGap, lonely, nearest, paceOf, usualDistance } from './gaps';

it('tells the usual distance by the median, so that a gap does not change it', () => {
  expect(usualDistance([0, 5, 10, 15, 900, 905], 1)).toBe(5);
  expect(usualDistance([0], 60)).toBe(60);
  expect(usualDistance([0, 1, 2], 60)).toBe(60);
});

it('takes what is more than two and a half distances for a gap', () => {
  expect(isGap(100, 125, 10)).toBe(false);
  expect(isGap(100, 126, 10)).toBe(true);
});

it('breaks lines one distance behind the last point before a gap', () => {
  expect(breaks([0, 5, 10, 60, 65], 5)).toEqual([{ place: 3, at: 15 }]);
  expect(breaks([0, 5, 10], 5)).toEqual([]);
  expect(breaks([], 5)).toEqual([]);
});

it('finds the nearest point, and none that is too far away', () => {
  const times = [10, 20, 30];

  expect(nearest(times, 24)).toBe(1);
  expect(nearest(times, 26)).toBe(2);
  expect(nearest(times, -100)).toBe(0);
  expect(nearest(times, 100)).toBe(2);
  expect(nearest(times, 100, 5)).toBeNull();
  expect(nearest([], 1)).toBeNull();
});

it('finds where a time begins', () => {
  expect(firstFrom([10, 20, 30], 20)).toBe(1);
  expect(firstFrom([10, 20, 30], 21)).toBe(2);
  expect(firstFrom([10, 20, 30], 31)).toBe(3);
});

it('finds points that stand alone', () => {
  expect(lonely([1, null, 2, null, 3, 4], 0, 5)).toEqual([0, 2]);
});

it('takes the slower pace where samples came faster for a while', () => {
  const times = [...Array.from({ length: 60 }, (_, index) => index), 65, 70, 75, 80, 85, 90, 95, 100];

  expect(paceOf(times, 5)).toBe(5);
  expect(paceOf([0, 60, 120, 900, 960], 5)).toBe(60);
  expect(paceOf([0, 60, 120, 180, 240, 300, 900], 5)).toBe(60);
});

it('finds the times without data, at the edges too', () => {
  expect(gapsWithin([100, 105, 110, 300, 305], 0, 400, 5)).toEqual([
    { from: 0, to: 100 },
    { from: 110, to: 300 },
    { from: 305, to: 400 },
  ]);
  expect(gapsWithin([], 0, 400, 5)).toEqual([{ from: 0, to: 400 }]);
  expect(gapsWithin([0, 10, 20, 30], 5, 35, 5)).toEqual([]);
});

it('waits a while for the newest sample', () => {
  expect(gapsWithin([0, 5, 10], 0, 35, 5)).toEqual([]);
  expect(gapsWithin([0, 5, 10], 0, 36, 5)).toEqual([{ from: 10, to: 36 }]);
});
