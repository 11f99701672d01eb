import { expect, it } from 'vitest';
import { barWords } from './barWords';

it.each([
  [1_000, 'Lines per second'],
  [60_000, 'Lines per minute'],
  [300_000, 'Lines per 5 min'],
  [3_600_000, 'Lines per hour'],
  [86_400_000, 'Lines per day'],
])('%i ms are %s', (step, words) => {
  expect(barWords(step)).toBe(words);
});
