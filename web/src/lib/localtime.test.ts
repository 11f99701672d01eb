import { expect, test } from 'vitest';
import { fromLocal, fromLocalSecond, toLocal, toLocalSecond } from './localtime';

test('a time goes into a field and comes back', () => {
  const moment = '2026-11-21T22:05:00.000Z';

  expect(fromLocal(toLocal(moment))).toBe(moment);
  expect(toLocal(moment)).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d$/);
});

test('an empty field is no time', () => {
  expect(fromLocal('')).toBeNull();
  expect(fromLocal('nonsense')).toBeNull();
  expect(toLocal(null)).toBe('');
  expect(toLocal('nonsense')).toBe('');
});

test('a time to the second goes into a field and comes back', () => {
  expect(fromLocalSecond(toLocalSecond('2026-11-21T10:00:05Z'))).toBe('2026-11-21T10:00:05Z');
  expect(fromLocalSecond('')).toBeNull();
  expect(toLocalSecond('soon')).toBe('');
});
