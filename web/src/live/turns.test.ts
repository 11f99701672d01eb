import { expect, it } from 'vitest';
import { stretchOf, Turn } from './turns';

it('what is new is shown once in a stretch, and the newest in the next one', () => {
  const turn = new Turn<string>(2_000);

  expect(turn.take('first', false, 100)).toBe('first');
  expect(turn.take('second', false, 1_100)).toBe('first');
  expect(turn.take('third', false, 2_100)).toBe('third');
});

it('what comes less often is never held back', () => {
  const turn = new Turn<number>(2_000);

  for (const at of [0, 2_000, 7_000, 12_000]) expect(turn.take(at, false, at)).toBe(at);
});

it('the first is shown as soon as there is one, and the last at once', () => {
  const turn = new Turn<string>(2_000);

  expect(turn.take(null, false, 100)).toBeNull();
  expect(turn.take('first', false, 200)).toBe('first');
  expect(turn.take('last', true, 300)).toBe('last');
});

it('all that get a value each second change with the same one of two', () => {
  const turns = Array.from({ length: 3 }, () => new Turn<number>(2_000));
  // One that came into sight later.
  const late = new Turn<number>(2_000);
  late.take(9, false, 9_900);

  const shown = [10, 11, 12, 13].map((second) =>
    [...turns, late].map((turn) => turn.take(second, false, second * 1_000 + 300)),
  );

  expect(shown).toEqual([10, 10, 12, 12].map((value) => [value, value, value, value]));
});

it('a longer stretch begins with one of the shorter ones', () => {
  const begins = (everyMs: number) =>
    [1, 2, 3, 4, 5, 6, 7, 8].filter(
      (second) => stretchOf(everyMs, second * 1_000) > stretchOf(everyMs, (second - 1) * 1_000),
    );

  expect(begins(2_000)).toEqual([2, 4, 6, 8]);
  expect(begins(4_000)).toEqual([4, 8]);
});
