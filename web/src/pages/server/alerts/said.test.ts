import { expect, it } from 'vitest';
import { adviceOf, extremeOf, verdictOf } from './said';
import type { Trial } from './trial';

const NOW = 1_000_000;
const DAY_AGO = NOW - 86_400;

function trial(...firings: [from: number, to: number][]): Trial {
  return { firings: firings.map(([from, to]) => ({ from, to, isOpen: to === NOW })), since: DAY_AGO, worst: 97.25 };
}

it('says how often and how long', () => {
  expect(verdictOf(trial(), NOW)).toBe('Would not have fired in the last 24 h.');
  expect(verdictOf(trial([0, 60]), NOW)).toBe('Would have fired once in the last 24 h, for 1 min.');
  expect(verdictOf(trial([0, 60], [100, 2_500]), NOW)).toBe(
    'Would have fired 2 times in the last 24 h (41 min total).',
  );
  expect(verdictOf(trial([NOW - 300, NOW]), NOW)).toBe(
    'Would have fired once in the last 24 h, for 5 min and would be firing now.',
  );
});

it('says of what time it speaks', () => {
  expect(verdictOf({ ...trial(), since: NOW - 7_500 }, NOW)).toBe(
    'Would not have fired in the 2 h 5 min of data available.',
  );
  expect(verdictOf({ firings: [], since: null, worst: null }, NOW)).toContain('not enough');
});

it('advises where it would have been a nuisance', () => {
  const often = trial(...Array.from({ length: 11 }, (_, place): [number, number] => [place, place + 1]));

  expect(adviceOf(trial([0, 1]), { clear: null, seconds: 0 })).toBeNull();
  expect(adviceOf(often, { clear: null, seconds: 0 })).toBe(
    'Add a recovery value or a minimum duration to reduce noise.',
  );
  expect(adviceOf(often, { clear: 80, seconds: 60 })).toBe('Use a longer minimum duration to reduce noise.');
});

it('tells the worst value', () => {
  expect(extremeOf(trial(), 'cpu', 'gt')).toBe('Highest 97.3 %');
  expect(extremeOf(trial(), 'cpu', 'lt')).toBe('Lowest 97.3 %');
});
