import { expect, it } from 'vitest';
import type { Line } from './lines';
import { rowsOf } from './rows';

function line(values: (number | null)[]): Line {
  return { name: 'cpu', label: 'cpu', colour: '', column: { avg: values, min: values, max: values } };
}

it('has the newest first, and says where there is no data', () => {
  const rows = rowsOf([0, 10, 20, 100], [line([1, 2, null, 4])], { from: 0, to: 100 }, [{ from: 10, to: 100 }]);

  expect(rows.map((row) => (row.gap ? 'gap' : row.values[0]?.value))).toEqual([4, 'gap', 2, 1]);
  expect(new Set(rows.map((row) => row.at)).size).toBe(rows.length);
});

it('has few rows, and none of the peaks is lost', () => {
  const values = Array.from({ length: 2_000 }, (_, place) => (place === 1_234 ? 90 : 5));
  const times = values.map((_, place) => place);

  const rows = rowsOf(times, [line(values)], { from: 0, to: 2_000 }, []);

  expect(rows.length).toBeLessThanOrEqual(64);
  expect(rows.some((row) => row.values[0]?.edge?.most === 90)).toBe(true);
});
