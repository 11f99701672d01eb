import { expect, test } from 'vitest';
import { spanOf } from './range';

const now = Date.parse('2026-11-21T10:00:00Z');

test('a range counts back from now', () => {
  expect(spanOf(new URLSearchParams('range=24h'), now)).toEqual({ since: '2026-11-20T10:00:00.000Z' });
});

test('without a range it is what the fields say', () => {
  expect(spanOf(new URLSearchParams(''), now)).toEqual({});
  expect(spanOf(new URLSearchParams('since=2026-11-01T08:00'), now)).toEqual({
    since: new Date('2026-11-01T08:00').toISOString(),
  });
  expect(spanOf(new URLSearchParams('until=nonsense&range=other'), now)).toEqual({});
});
