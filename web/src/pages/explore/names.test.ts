import { expect, it } from 'vitest';
import type { SeriesName } from '../../api/types';
import { choicesOf, entriesOf } from './names';

const series = (name: string, unit = 'count', help: string | null = null): SeriesName => ({
  name,
  unit,
  kind: 'gauge',
  help,
});

const CHOICES = choicesOf([
  series('fan_speed:cpu', 'rpm', 'Speed of a fan.'),
  series('disk_percent:/'),
  series('disk_percent:/srv'),
  series('cpu_percent', 'percent', 'CPU time that was used.'),
  series('odd:a,b'),
]);

const named = (search: string, ...open: string[]) =>
  entriesOf(CHOICES, search, new Set(open)).map((entry) => entry.name);

it('has one entry a name, and its targets where they are asked for', () => {
  expect(named('')).toEqual(['cpu_percent', 'disk_percent:*', 'fan_speed:*', 'odd:*']);
  expect(named('', 'disk_percent')).toEqual([
    'cpu_percent',
    'disk_percent:*',
    'disk_percent:/',
    'disk_percent:/srv',
    'fan_speed:*',
    'odd:*',
  ]);
  expect(named('odd', 'odd')).toEqual(['odd:*', 'odd:a,b']);
});

it('finds names, descriptions and targets', () => {
  expect(named('SPEED fan')).toEqual(['fan_speed:*']);
  expect(named('used')).toEqual(['cpu_percent']);
  expect(named('srv')).toEqual(['disk_percent:*', 'disk_percent:/srv']);
  expect(named('nothing')).toEqual([]);
});

it('knows the units', () => {
  expect(CHOICES.map(({ base, unit }) => [base, unit])).toEqual([
    ['cpu_percent', 'percent'],
    ['disk_percent', 'percent'],
    ['fan_speed', 'rpm'],
    ['odd', 'count'],
  ]);
});
