import { expect, it } from 'vitest';
import type { SeriesName } from '../../../api/types';
import { chosenOf, found, groupsOf, isChosen, linesOf, namesOfChosen, queryOfChosen, toggledIn } from './more';

const series = (name: string, unit = 'rpm', kind: SeriesName['kind'] = 'gauge', help: string | null = null) => ({
  name,
  unit,
  kind,
  help,
});

const NAMES = [
  series('cpu_percent', 'percent'),
  series('fan_speed:case', 'rpm', 'gauge', 'How fast fans turn.'),
  series('fan_speed:cpu', 'rpm', 'gauge', 'How fast fans turn.'),
  series('written', 'bytes', 'counter'),
];

it('groups open series by their names, and leaves typed ones out', () => {
  const groups = groupsOf(NAMES);

  expect(groups.map((group) => [group.base, group.unit, group.names.length])).toEqual([
    ['fan_speed', 'rpm', 2],
    ['written', 'bytes_per_second', 1],
  ]);
});

it('finds them by name, target and help', () => {
  const bases = (search: string) => found(groupsOf(NAMES), search).map((group) => group.base);

  expect(bases('')).toEqual(['fan_speed', 'written']);
  expect(bases('TURN cpu')).toEqual(['fan_speed']);
  expect(bases('nothing')).toEqual([]);
});

it('keeps in the address what is chosen', () => {
  expect(chosenOf(new URLSearchParams('more=fan_speed,written,fan_speed'))).toEqual(['fan_speed', 'written']);
  expect(chosenOf(new URLSearchParams())).toEqual([]);
  expect(queryOfChosen(toggledIn(['fan_speed'], 'written'))).toEqual({ more: 'fan_speed,written' });
  expect(queryOfChosen(toggledIn(['fan_speed'], 'fan_speed'))).toEqual({ more: null });
});

it('reads the chosen ones alone, and no typed series twice', () => {
  const names = NAMES.map((one) => one.name);

  expect(namesOfChosen(names, ['fan_speed', 'cpu_percent'])).toEqual(['fan_speed:case', 'fan_speed:cpu']);
  expect(isChosen('fan_speed:cpu', ['fan_speed'])).toBe(true);
  expect(isChosen('written', ['fan_speed'])).toBe(false);
});

it('has a line for each target', () => {
  const column = (value: number) => ({ avg: [value], min: [value], max: [value] });
  const columns = new Map([
    ['fan_speed:case', column(700)],
    ['fan_speed:cpu', column(900)],
  ]);
  const group = groupsOf(NAMES)[0];

  const { lines, leftOut } = linesOf({ resolution: 1, times: [1], columns }, group!);

  expect(lines.map((line) => line.label)).toEqual(['case', 'cpu']);
  expect(leftOut).toBe(0);
});
