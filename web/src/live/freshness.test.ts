import { expect, test } from 'vitest';
import { Pace } from './freshness';

function paceOf(...seconds: number[]): Pace {
  const pace = new Pace();
  for (const second of seconds) pace.add(second * 1000);
  return pace;
}

test('a reading of a quick agent is old after half a minute', () => {
  expect(paceOf(0, 1, 2, 3).limitMs).toBe(30_000);
});

test('a slow agent may miss three samples', () => {
  expect(paceOf(0, 60, 120).limitMs).toBe(180_000);
});

test('nothing is known from one sample', () => {
  const pace = paceOf(7);

  expect(pace.intervalMs).toBeNull();
  expect(pace.limitMs).toBe(30_000);
});

test('the time in which an agent was away is not its interval', () => {
  expect(paceOf(0, 5, 600, 605).intervalMs).toBe(5_000);
});

test('an agent that was made slower is believed after a few samples', () => {
  expect(paceOf(0, 5, 65, 125, 185).intervalMs).toBe(60_000);
});

test('samples that come again, or in the wrong order, say nothing', () => {
  expect(paceOf(0, 5, 5, 4, 9).intervalMs).toBe(5_000);
});
