import { expect, test } from 'vitest';
import { ticksOf } from './ticks';

const at = (text: string) => Date.parse(text) / 1000;

test('a day has lines at round hours that are not too close', () => {
  const ticks = ticksOf({ from: at('2026-11-23T03:07:11'), to: at('2026-11-24T03:07:11') }, 840);

  expect(ticks.map(({ at }) => new Date(at * 1000).getHours())).toEqual([6, 9, 12, 15, 18, 21, 0, 3]);
  expect(ticks.every(({ label }) => label !== '')).toBe(true);
});

test('a narrow window has few lines', () => {
  expect(ticksOf({ from: at('2026-11-23T03:00:00'), to: at('2026-11-24T03:00:00') }, 240).length).toBeLessThanOrEqual(
    3,
  );
  expect(ticksOf({ from: 0, to: 10 }, 10).length).toBeLessThanOrEqual(2);
});
