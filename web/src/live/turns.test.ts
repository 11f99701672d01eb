import { expect, it } from 'vitest';
import { Turn } from './turns';

it('what is new is shown once in a stretch, and the newest in the next one', () => {
  const turn = new Turn<string>(2_000, 0);

  expect(turn.take('first', false, 100)).toBe('first');
  expect(turn.take('second', false, 1_100)).toBe('first');
  expect(turn.take('third', false, 2_100)).toBe('third');
});

it('what comes less often is never held back', () => {
  const turn = new Turn<number>(2_000, 1_999);

  for (const at of [0, 2_000, 7_000, 12_000]) expect(turn.take(at, false, at)).toBe(at);
});

it('the first is shown as soon as there is one, and the last at once', () => {
  const turn = new Turn<string>(2_000, 0);

  expect(turn.take(null, false, 100)).toBeNull();
  expect(turn.take('first', false, 200)).toBe('first');
  expect(turn.take('last', true, 300)).toBe('last');
});

it('of many that get a value at once half change', () => {
  const turns = Array.from({ length: 100 }, (_, index) => new Turn<number>(2_000, index * 20));

  for (const turn of turns) turn.take(1, false, 10_000);

  expect(turns.filter((turn) => turn.take(2, false, 11_000) === 2)).toHaveLength(50);
});
