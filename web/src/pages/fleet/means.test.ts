import { expect, test } from 'vitest';
import { meansOf } from './means';

test('the mean of a minute is of the servers that have one in it', () => {
  const one = { resolution_seconds: 60, timestamps: [600, 660], avg: [10, 20] };
  const other = { resolution_seconds: 120, timestamps: [600, 720], avg: [30, null] };

  expect(meansOf([one, other])).toEqual({ resolution_seconds: 60, timestamps: [600, 660], avg: [20, 25] });
  expect(meansOf([{ ...one, weight: 3 }, other]).avg).toEqual([15, 22.5]);
  expect(meansOf([])).toEqual({ resolution_seconds: 60, timestamps: [], avg: [] });
});
