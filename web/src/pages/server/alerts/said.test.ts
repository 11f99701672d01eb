import { expect, it } from 'vitest';
import { adviceOf, extremeOf, verdictOf } from './said';
import type { Trial } from './trial';

const NOW = 1_000_000;
const DAY_AGO = NOW - 86_400;

function trial(...firings: [from: number, to: number][]): Trial {
  return { firings: firings.map(([from, to]) => ({ from, to, isOpen: to === NOW })), since: DAY_AGO, worst: 97.25 };
}

it('says how often and how long', () => {
  expect(verdictOf(trial(), NOW)).toBe('It would not have fired in the last 24 h.');
  expect(verdictOf(trial([0, 60]), NOW)).toBe('It would have fired once in the last 24 h, for 1 min.');
  expect(verdictOf(trial([0, 60], [100, 2_500]), NOW)).toBe(
    'It would have fired 2 times in the last 24 h, for 41 min in all.',
  );
  expect(verdictOf(trial([NOW - 300, NOW]), NOW)).toBe(
    'It would have fired once in the last 24 h, for 5 min, and it would be firing now.',
  );
});

it('says of what time it speaks', () => {
  expect(verdictOf({ ...trial(), since: NOW - 7_500 }, NOW)).toBe(
    'It would not have fired in the 2 h 5 min that are known.',
  );
  expect(verdictOf({ firings: [], since: null, worst: null }, NOW)).toContain('no telling');
});

it('advises where it would have been a nuisance', () => {
  const often = trial(...Array.from({ length: 11 }, (_, place): [number, number] => [place, place + 1]));

  expect(adviceOf(trial([0, 1]), { clear: null, seconds: 0 })).toBeNull();
  expect(adviceOf(often, { clear: null, seconds: 0 })).toBe(
    'That is often: a value to recover at or a time that it must hold makes it quieter.',
  );
  expect(adviceOf(often, { clear: 80, seconds: 60 })).toBe(
    'That is often: a longer time that it must hold makes it quieter.',
  );
});

it('tells the worst value', () => {
  expect(extremeOf(trial(), 'cpu', 'gt')).toBe('Highest 97.3 %');
  expect(extremeOf(trial(), 'cpu', 'lt')).toBe('Lowest 97.3 %');
});
