import { beforeEach, expect, it } from 'vitest';
import { preferences } from '../text/preferences.svelte';
import { gapsOf, gapText, newestOf } from './facts';
import type { Line } from './lines';

beforeEach(() => {
  preferences.clock = '24';
  preferences.zone = 'utc';
});

function line(values: (number | null)[], more: Partial<Line> = {}): Line {
  return {
    name: 'cpu',
    label: 'cpu',
    colour: '--series-1',
    column: { avg: values, min: values, max: values },
    ...more,
  };
}

const every = (seconds: number, from: number, to: number) =>
  Array.from({ length: (to - from) / seconds + 1 }, (_, place) => from + place * seconds);

it('finds a gap where none of the lines has data', () => {
  const times = [...every(5, 0, 300), ...every(5, 600, 900)];
  const half = times.map((time) => (time < 400 ? 1 : null));

  expect(gapsOf(times, [line(times.map(() => 1))], { from: 0, to: 900 })).toEqual([{ from: 300, to: 600 }]);
  expect(gapsOf(times, [line(half)], { from: 0, to: 900 })).toEqual([{ from: 300, to: 900 }]);
  expect(
    gapsOf(
      times,
      [
        line(half),
        line(
          times.map(() => 1),
          { isFaint: true },
        ),
      ],
      { from: 0, to: 900 },
    ),
  ).toEqual([{ from: 300, to: 900 }]);
});

it('takes a series that is measured once a minute for whole', () => {
  const times = every(5, 0, 900);

  expect(gapsOf(times, [line(times.map((time) => (time % 60 === 0 ? 1 : null)))], { from: 0, to: 900 })).toEqual([]);
});

it('takes no change of pace for a gap', () => {
  const times = [...every(5, 0, 300), ...every(1, 301, 600), ...every(5, 605, 900)];

  expect(gapsOf(times, [line(times.map(() => 1))], { from: 0, to: 900 })).toEqual([]);
});

it('says when there was no data', () => {
  const at = Date.UTC(2026, 10, 24, 8) / 1000;
  const span = { from: at, to: at + 3_600 };
  const now = (at + 3_600) * 1000;

  expect(gapText({ from: at + 720, to: at + 3_120 }, span, now)).toBe('No data 08:12 to 08:52');
  expect(gapText({ from: at + 720, to: at + 3_600 }, span, now)).toBe('No data since 08:12');
  expect(gapText({ from: at, to: at + 720 }, span, now)).toBe('No data until 08:12');
  expect(gapText(span, span, now)).toBe('No data');
  expect(gapText({ from: at + 720, to: at + 760 }, span, now)).toBe('No data 08:12:00 to 08:12:40');
});

it('finds the newest points while they are the present', () => {
  const times = [10, 15, 20];

  expect(newestOf(times, [line([1, 2, 3])], { from: 0, to: 25 })).toEqual([
    { name: 'cpu', colour: '--series-1', time: 20, value: 3 },
  ]);
  expect(newestOf(times, [line([1, 2, null])], { from: 0, to: 25 })[0]?.time).toBe(15);
  expect(newestOf(times, [line([1, 2, 3])], { from: 0, to: 90 })).toEqual([]);
  expect(newestOf(times, [line([1]), line([1]), line([1]), line([1])], { from: 0, to: 25 })).toEqual([]);
});
