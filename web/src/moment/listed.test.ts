// @vitest-environment jsdom
import { expect, test, vi } from 'vitest';
import type { Happening } from './happened';
import { listed } from './listed';

vi.hoisted(() => {
  globalThis.matchMedia = () => ({ matches: false, addEventListener: () => undefined }) as unknown as MediaQueryList;
});

const DAY = 86_400;
const NOON = new Date(2026, 10, 21, 12).getTime() / 1000;

const one = (at: number, title = 'Signed in', more: Partial<Happening> = {}): Happening => ({
  id: `${at} ${title}`,
  at,
  title,
  icon: 'key',
  tone: 'accent',
  by: 'ada',
  serverId: null,
  ...more,
});

test('the same several times in a row is one, from the first to the last time', () => {
  const rows = listed([one(NOON), one(NOON + 9), one(NOON + 20, 'Restarted'), one(NOON + 30)], NOON);

  expect(rows.map(({ title, count, at, until }) => [title, count, at - NOON, until - NOON])).toEqual([
    ['Signed in', 2, 0, 9],
    ['Restarted', 1, 20, 20],
    ['Signed in', 1, 30, 30],
  ]);
});

test('what somebody else did, or what leads elsewhere, is another one', () => {
  const rows = listed(
    [one(NOON), one(NOON + 1, 'Signed in', { by: 'eve' }), one(NOON + 2, 'Signed in', { href: '/x' })],
    NOON,
  );

  expect(rows).toHaveLength(3);
});

test('each day is named where it begins, unless all is of today', () => {
  const two = [one(NOON - DAY), one(NOON - DAY + 1, 'Restarted'), one(NOON)];

  expect(listed(two, NOON).map(({ opensDay }) => opensDay)).toEqual([true, false, true]);
  expect(listed(two.slice(2), NOON).map(({ opensDay }) => opensDay)).toEqual([false]);
  expect(listed(two.slice(2), NOON + DAY).map(({ opensDay }) => opensDay)).toEqual([true]);
});

test('what spans midnight is not joined', () => {
  expect(listed([one(NOON - DAY), one(NOON)], NOON).map(({ count }) => count)).toEqual([1, 1]);
});
