import { expect, it } from 'vitest';
import type { Line } from '../../../charts/lines';
import { emptyTable, type Column, type Table } from '../../../charts/series';
import { comparedOf, comparisonOf, withBefore } from './compare';

const column = (values: number[]): Column => ({ avg: values, min: values, max: values });
const line = (name: string, values: number[]): Line => ({ name, label: name, colour: '', column: column(values) });

function past(times: number[], columns: Record<string, number[]>): Table {
  const table = { ...emptyTable(5), times };
  for (const [name, values] of Object.entries(columns)) table.columns.set(name, column(values));
  return table;
}

it('is in the address', () => {
  expect(comparisonOf(new URLSearchParams('compare=day'))).toBe('day');
  expect(comparisonOf(new URLSearchParams('compare=year'))).toBeNull();
});

it('draws each line as it was a day before, at the times of today', () => {
  const now = 1_800_000_000;
  const lines = withBefore(
    [line('cpu_percent', [1, 2])],
    [now, now + 5],
    past([now - 86_400, now - 86_395], { cpu_percent: [7, 8] }),
    'day',
  );

  expect(lines.map((one) => [one.label, one.column.avg, one.isFaint ?? false])).toEqual([
    ['cpu_percent', [1, 2], false],
    ['cpu_percent, day before', [7, 8], true],
  ]);
});

it('leaves charts of many lines, and what was not measured then, as they are', () => {
  const lines = ['a', 'b', 'c', 'd'].map((name) => line(name, [1]));

  expect(withBefore(lines, [0], past([0], { a: [1] }), 'day')).toBe(lines);
  expect(withBefore([line('a', [1])], [0], past([0], { b: [1] }), 'day')).toHaveLength(1);
});

it('reads what can be compared, and what was chosen', () => {
  const names = ['cpu_percent', 'network_in:eth0', 'disk_percent:/', 'fan_speed:case'];

  expect(comparedOf(names, [])).toEqual(['cpu_percent', 'network_in:eth0']);
  expect(comparedOf(names, ['fan_speed'])).toContain('fan_speed:case');
});
