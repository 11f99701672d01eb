import { expect, it } from 'vitest';
import { drawn, inPlaces, seriesLabel, sorted, type Row } from './lines';
import type { CombinedAnswer, CombinedLine } from './types';

function line(given: Partial<CombinedLine>, avg: (number | null)[]): CombinedLine {
  const minus = (by: number) => avg.map((value) => (value === null ? null : value + by)) as number[];
  return {
    name: 'cpu_percent',
    series: null,
    server_id: null,
    server_name: null,
    tag: null,
    avg: avg as number[],
    min: minus(-1),
    max: minus(1),
    servers: avg.map((value) => (value === null ? 0 : 2)),
    ...given,
  };
}

function answer(...lines: CombinedLine[]): CombinedAnswer {
  return { resolution_seconds: 60, timestamps: [0, 60, 120], lines, left_out: 0, server_count: 2 };
}

const unitOf = (name: string) => (name.startsWith('cpu') ? ('percent' as const) : ('count' as const));

it('draws a line a server, and one chart a unit', () => {
  const given = answer(
    line({ server_id: '1', server_name: 'web-1' }, [1, 2, 3]),
    line({ server_id: '2', server_name: 'web-2' }, [1, 2, 3]),
    line({ name: 'load_1', server_id: '1', server_name: 'web-1' }, [1, 2, 3]),
  );

  const { charts, rows, times } = drawn(given, 'server', unitOf);

  expect(times).toEqual([0, 60, 120]);
  expect(charts.map(({ unit, lines }) => [unit, lines.map((one) => one.label)])).toEqual([
    ['percent', ['web-1: cpu_percent', 'web-2: cpu_percent']],
    ['count', ['web-1: load_1']],
  ]);
  expect(charts.map((chart) => chart.names)).toEqual([['cpu_percent'], ['load_1']]);
  expect(rows.map((row) => row.serverId)).toEqual(['1', '2', '1']);
  expect(new Set(rows.map((row) => row.name)).size).toBe(3);
});

it('shows the bands of up to three lines of a chart, and dashes the seventh', () => {
  const few = Array.from({ length: 3 }, (_, nth) => line({ server_id: `${nth}` }, [1]));
  const load = line({ name: 'load_1', server_id: '1' }, [1]);
  const bands = (lines: CombinedLine[]) =>
    drawn(answer(...lines), 'server', unitOf).charts.map((chart) => chart.lines.every((one) => one.hasBand));

  expect(bands([...few, load])).toEqual([true, true]);
  expect(bands([...few, line({ server_id: '9' }, [1]), load])).toEqual([false, true]);

  const many = Array.from({ length: 7 }, (_, nth) => line({ server_id: `${nth}`, server_name: `web-${nth}` }, [1]));
  const { charts } = drawn(answer(...many), 'server', unitOf);

  expect(charts[0]?.lines.map((one) => [one.hasBand, one.isDashed]).at(-1)).toEqual([false, true]);
  expect(charts[0]?.lines[5]?.isDashed).toBe(false);
});

it('knows whether its points are averages', () => {
  const same = { ...line({}, [1, null]), min: [1, null] as number[], max: [1, null] as number[] };

  expect(drawn(answer(line({}, [1, 2])), 'none', unitOf).isMean).toBe(true);
  expect(drawn(answer(same), 'none', unitOf).isMean).toBe(false);
});

it('reckons the table from what is there', () => {
  const { rows } = drawn(answer(line({}, [10, null, 20]), line({ tag: 'db' }, [null, null, null])), 'tag', unitOf);

  expect(rows[0]).toMatchObject({ label: 'No tag', min: 9, mean: 15, max: 21, last: 20, servers: 2 });
  expect(rows[1]).toMatchObject({ label: 'db', min: null, mean: null, max: null, last: null, servers: 0 });
});

it('names targets, and servers that are gone', () => {
  const { rows } = drawn(
    answer(line({ name: 'disk_read:*', series: 'disk_read:sda', server_id: '1' }, [1])),
    'series',
    unitOf,
  );

  expect(rows[0]?.label).toBe('deleted server: sda');
  expect([seriesLabel('cpu_percent'), seriesLabel('disk_read:*'), seriesLabel('fan_speed:cpu')]).toEqual([
    'cpu_percent',
    'disk_read: all',
    'fan_speed: cpu',
  ]);
});

it('sorts rows, those without a value last', () => {
  const row = (label: string, max: number | null) => ({ label, max }) as Row;
  const rows = [row('web-10', 1), row('web-9', null), row('db', 3)];
  const labels = (key: 'label' | 'max', isDescending: boolean) =>
    sorted(rows, key, isDescending).map((one) => one.label);

  expect(labels('label', false)).toEqual(['db', 'web-9', 'web-10']);
  expect(labels('max', true)).toEqual(['db', 'web-10', 'web-9']);
  expect(labels('max', false)).toEqual(['web-10', 'db', 'web-9']);
});

it('lines keep their places, and new ones take those of the ones that have left', () => {
  const of = (...ids: string[]) => ids.map((id) => line({ server_id: id }, [1]));
  const placed = (before: string[], now: string[]) =>
    inPlaces(of(...before), of(...now)).map(({ server_id }) => server_id);

  expect(placed([], ['b', 'a'])).toEqual(['b', 'a']);
  expect(placed(['a', 'b', 'c'], ['c', 'b', 'a'])).toEqual(['a', 'b', 'c']);
  expect(placed(['a', 'b', 'c'], ['new', 'c', 'b'])).toEqual(['new', 'b', 'c']);
  expect(placed(['a', 'b', 'c'], ['new', 'other', 'c', 'b'])).toEqual(['new', 'b', 'c', 'other']);
  expect(placed(['a', 'b', 'c'], ['c', 'b'])).toEqual(['b', 'c']);
});
