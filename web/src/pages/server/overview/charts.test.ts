import { expect, it } from 'vitest';
import { emptyTable, type Table } from '../../../charts/series';
import { allOf, busiest, chartsOf, type Choices } from './charts';

function table(columns: Record<string, number[]>): Table {
  const made = emptyTable(5);
  made.times = [0, 5];
  for (const [name, values] of Object.entries(columns)) {
    made.columns.set(name, { avg: values, min: values, max: values });
  }
  return made;
}

const plain: Choices = { cores: false, interface: null, device: null };

function chart(of: Table, key: string, chosen = plain) {
  return chartsOf(of, chosen, null, 4).find((one) => one.key === key);
}

it('finds everything that a kind is of, in the order of numbers', () => {
  expect(allOf(table({ 'cpu_core:10': [1], 'cpu_core:2': [1], cpu_percent: [1] }), 'cpu_core')).toEqual(['2', '10']);
});

it('shows the busiest interface first, and the one that was chosen', () => {
  const given = table({ 'network_in:lo': [1, 1], 'network_in:eth0': [5, 5], 'network_out:eth0': [1, 1] });

  expect(busiest(given, ['lo', 'eth0'], ['network_in', 'network_out'])).toBe('eth0');
  expect(chart(given, 'network')?.lines.map((line) => line.label)).toEqual(['in', 'out']);
  expect(chart(given, 'network', { ...plain, interface: 'lo' })?.chosen).toBe('lo');
  expect(chart(given, 'network', { ...plain, interface: 'gone' })?.chosen).toBe('eth0');
});

it('has lines without values where no interface was measured, so that the chart is hatched', () => {
  const network = chart(table({ cpu_percent: [5, 5] }), 'network');

  expect(network?.chosen).toBeNull();
  expect(network?.lines.map((line) => [line.label, line.column.avg])).toEqual([
    ['in', [null, null]],
    ['out', [null, null]],
  ]);
  expect(chart(table({}), 'network')?.lines).toEqual([]);
});

it('shows core by core when that was chosen and there are any', () => {
  const given = table({ cpu_percent: [5, 5], 'cpu_core:0': [5, 5] });

  expect(chart(given, 'cpu', { ...plain, cores: true })?.lines[0]?.label).toBe('core 0');
  expect(chart(table({ cpu_percent: [5, 5] }), 'cpu', { ...plain, cores: true })?.lines[0]?.label).toBe('all cores');
});

it('shows the greatest of many containers, and says how many it leaves out', () => {
  const names = Array.from({ length: 9 }, (_, place) => [`container_cpu:c${place}`, [0, place]] as const);
  const found = chart(table(Object.fromEntries(names.map(([name, values]) => [name, [...values]]))), 'container-cpu');

  expect(found?.lines.map((line) => line.label)).toEqual(['c3', 'c4', 'c5', 'c6', 'c7', 'c8']);
  expect(found?.leftOut).toBe(3);
});

it('leaves out what a machine does not have', () => {
  expect(chart(table({ cpu_percent: [1, 1] }), 'temperatures')).toBeUndefined();
});

it('draws a line at the number of cores', () => {
  expect(chart(table({ load_1: [1, 1] }), 'load')?.limits).toEqual([{ value: 4, label: '4 cores', tone: 'idle' }]);
});
