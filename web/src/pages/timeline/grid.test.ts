import { expect, test } from 'vitest';
import { bucketAt, entriesOf, found, heatRow, highest, inSight, lineHeight, listing, runs, valueAt } from './grid';

const row = (mean: (number | null)[], max = mean) => heatRow({ start: 600, width: 60, scale: 10, mean, max });

test('a row says what a server had at a time, and nothing where nothing was measured', () => {
  const given = row([10, null, 30], [15, null, 999]);

  expect(valueAt(given, 600, 'mean')).toBe(1);
  expect(valueAt(given, 659.9, 'max')).toBe(1.5);
  expect(valueAt(given, 660, 'mean')).toBeNull();
  expect(valueAt(given, 590, 'mean')).toBeNull();
  expect(valueAt(given, 780, 'mean')).toBeNull();
  expect(valueAt(undefined, 600, 'mean')).toBeNull();
  expect(bucketAt(given, 725)).toEqual({ from: 720, to: 780 });
  expect(given.top).toEqual({ mean: 3, max: 99.9 });
});

test('a row without a value has no top and comes last', () => {
  const empty = row([]);

  expect(empty.top).toBeNull();
  expect(empty.score).toBe(-Infinity);
  expect(row([null, null]).score).toBe(-Infinity);
});

test('a server that is busy for long comes before one with a single peak', () => {
  const long = row(Array.from({ length: 100 }, (_, place) => (place < 20 ? 800 : 10)));
  const single = row(Array.from({ length: 100 }, (_, place) => (place === 5 ? 1000 : 10)));

  expect(long.score).toBeGreaterThan(single.score);
});

test('neighbours that look the same are one run', () => {
  expect([...runs(['a', 'a', 'b', 'b', 'b', 'c'], 1, 5)]).toEqual([
    [1, 2, 'a'],
    [2, 5, 'b'],
  ]);
  expect([...runs([], 0, 0)]).toEqual([]);
});

const servers = [
  { id: '1', name: 'web-10', tags: ['web', 'eu'] },
  { id: '2', name: 'web-9', tags: ['web'] },
  { id: '3', name: 'db-1', tags: [] },
];
const scores: Record<string, number> = { 1: 5, 2: 90, 3: 50 };
const scoreOf = (id: string) => scores[id] ?? -Infinity;
const names = (how: Parameters<typeof entriesOf>[1]) =>
  entriesOf(servers, how, scoreOf).map((entry) =>
    entry.kind === 'server' ? entry.name : `[${entry.tag} ${entry.count}]`,
  );

test('servers stand by name, by what is worst, and in groups', () => {
  expect(names({ order: 'name', isGrouped: false })).toEqual(['db-1', 'web-9', 'web-10']);
  expect(names({ order: 'worst', isGrouped: false })).toEqual(['web-9', 'db-1', 'web-10']);
  expect(names({ order: 'name', isGrouped: true })).toEqual([
    '[eu 1]',
    'web-10',
    '[web 1]',
    'web-9',
    '[null 1]',
    'db-1',
  ]);
  expect(names({ order: 'worst', isGrouped: true })).toEqual([
    '[web 1]',
    'web-9',
    '[eu 1]',
    'web-10',
    '[null 1]',
    'db-1',
  ]);
});

test('a search looks at names and tags', () => {
  expect(found(servers, null, ' WEB').map(({ id }) => id)).toEqual(['1', '2']);
  expect(found(servers, 'eu', '').map(({ id }) => id)).toEqual(['1']);
  expect(found(servers, null, 'x')).toEqual([]);
});

test('the highest at a time come first, and who was not measured is none of them', () => {
  const rows = new Map([
    ['a', row([10, 90])],
    ['b', row([20, null])],
    ['c', row([30, 50])],
  ]);
  const at = (time: number) => highest(rows.keys(), (id) => rows.get(id), time, 'mean', 2).map(({ id }) => id);

  expect(at(600)).toEqual(['c', 'b']);
  expect(at(660)).toEqual(['a', 'c']);
});

test('few servers have high lines, many have low ones', () => {
  expect(lineHeight(3, 600)).toBe(30);
  expect(lineHeight(24, 600)).toBe(25);
  expect(lineHeight(10_000, 600)).toBe(16);
  expect(inSight(0, 160, 16, 10_000)).toEqual({ first: 0, end: 12 });
  expect(inSight(16_000, 160, 16, 10_000)).toEqual({ first: 998, end: 1012 });
  expect(inSight(0, 600, 30, 3)).toEqual({ first: 0, end: 3 });
});

test('the list of the highest values is short, long, or all of few, and never endless', () => {
  expect(listing(false, 8)).toEqual({ most: 10, next: null });
  expect(listing(false, 40)).toEqual({ most: 10, next: 40 });
  expect(listing(true, 40)).toEqual({ most: 40, next: 10 });
  expect(listing(false, 10_000)).toEqual({ most: 10, next: 200 });
  expect(listing(true, 10_000)).toEqual({ most: 200, next: 10 });
});
