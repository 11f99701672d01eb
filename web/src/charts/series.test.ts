import { describe, expect, it } from 'vitest';
import type { Snapshot } from '../api/types';
import { Rates } from './rates';
import { Appender, emptyTable, newest, readingsOf, summaryOf, tableOf, trim, type Column, type Table } from './series';

const all = () => true;

function column(values: (number | null)[]): Column {
  return { avg: [...values], min: [...values], max: [...values] };
}

function table(times: number[], values: (number | null)[], resolution = 5): Table {
  return { resolution, times, columns: new Map([['cpu_percent', column(values)]]) };
}

const reading = (value: number) => new Map([['cpu_percent', value]]);

function sample(changes: Partial<Snapshot> = {}): Snapshot {
  return {
    server_id: 'a',
    timestamp: '2026-11-21T21:20:00.500Z',
    cpu_percent: 12,
    cpu_per_core: [10, 14],
    load_average: [1, 2, 3],
    memory_percent: 50,
    memory_total: 200,
    memory_used: 100,
    swap_total: 0,
    swap_used: 0,
    disk_usage: [{ path: '/', total: 10, used: 5, free: 5, percent: 50 }],
    disk_io: [],
    network: [{ interface: 'eth0', bytes_recv: 1000, bytes_sent: 500 }],
    temperatures: [],
    uptime_seconds: 100,
    process_count: 7,
    containers: [],
    ...changes,
  } as Snapshot;
}

describe('a table', () => {
  it('has an empty point where samples are missing', () => {
    const values = { avg: [1, 2, 3], min: [1, 2, 3], max: [1, 2, 3] };

    const made = tableOf({ resolution_seconds: 5, timestamps: [0, 5, 60], series: { cpu_percent: values } });

    expect(made.times).toEqual([0, 5, 10, 60]);
    expect(made.columns.get('cpu_percent')?.avg).toEqual([1, 2, null, 3]);
  });

  it('has one point a time', () => {
    const values = { avg: [1, 2, 3], min: [1, 2, 3], max: [1, 2, 3] };

    const made = tableOf({ resolution_seconds: 1, timestamps: [7, 7, 8], series: { cpu_percent: values } });

    expect(made.times).toEqual([7, 8]);
    expect(made.columns.get('cpu_percent')?.max).toEqual([2, 3]);
  });

  it('forgets what is out of sight, but for the point before the edge', () => {
    const times = Array.from({ length: 100 }, (_, index) => index);
    const long = table(times, [...times]);

    trim(long, 10);
    expect(long.times.length).toBe(100);
    trim(long, 80);

    expect(long.times[0]).toBe(79);
    expect(long.columns.get('cpu_percent')?.avg[0]).toBe(79);
  });
});

describe('samples', () => {
  it('have the names of the history', () => {
    const readings = readingsOf(sample(), new Rates(), 5);

    expect(readings.get('cpu_core:1')).toBe(14);
    expect(readings.get('load_15')).toBe(3);
    expect(readings.get('disk_percent:/')).toBe(50);
    expect(readings.get('network_in:eth0')).toBeNull();
  });

  it('give rates from the second one on', () => {
    const rates = new Rates();
    readingsOf(sample(), rates, 5);

    const later = sample({
      timestamp: '2026-11-21T21:20:05.500Z',
      network: [{ interface: 'eth0', bytes_recv: 2000, bytes_sent: 500 }],
    });

    expect(readingsOf(later, rates, 5).get('network_in:eth0')).toBe(200);
    expect(readingsOf(later, rates, 5).get('network_out:eth0')).toBeNull();
  });

  it('tell sensors of the same label apart', () => {
    const temperatures = [
      { label: 'core', celsius: 40 },
      { label: 'core', celsius: 50 },
    ];

    const readings = readingsOf(sample({ temperatures }), new Rates(), 5);

    expect([readings.get('temperature:core'), readings.get('temperature:core#2')]).toEqual([40, 50]);
  });

  it('come after the last point', () => {
    const live = table([0, 5], [1, 2]);

    new Appender(live, 5).add(10.4, reading(3), all);

    expect(live.times).toEqual([0, 5, 10]);
    expect(live.columns.get('cpu_percent')?.avg).toEqual([1, 2, 3]);
  });

  it('that arrive again change nothing but their own point', () => {
    const live = table([0, 5], [1, 2]);

    new Appender(live, 5).add(5.2, reading(2), all);

    expect(live.times).toEqual([0, 5]);
    expect(live.columns.get('cpu_percent')?.avg).toEqual([1, 2]);
  });

  it('break the line when some are missing', () => {
    const live = table([0, 5], [1, 2]);

    new Appender(live, 5).add(30, reading(3), all);

    expect(live.times).toEqual([0, 5, 10, 30]);
    expect(live.columns.get('cpu_percent')?.avg).toEqual([1, 2, null, 3]);
  });

  it('of before are not put in', () => {
    expect(new Appender(table([0, 50], [1, 2]), 5).add(20, reading(3), all)).toBe(false);
  });

  it('go into the mean of their minute', () => {
    const live = table([0], [10], 60);
    const appender = new Appender(live, 5);

    appender.add(60, reading(10), all);
    appender.add(65, reading(30), all);
    appender.add(70, reading(20), all);

    const found = live.columns.get('cpu_percent');
    expect(live.times).toEqual([0, 60]);
    expect([found?.avg[1], found?.min[1], found?.max[1]]).toEqual([20, 10, 30]);
  });

  it('make columns for what is new, and leave what nobody wants aside', () => {
    const live = table([0], [1]);

    new Appender(live, 5).add(
      5,
      new Map([
        ['cpu_percent', 2],
        ['container_cpu:web', 3],
        ['disk_used:/', 4],
      ]),
      (name) => !name.startsWith('disk_used'),
    );

    expect(live.columns.get('container_cpu:web')?.avg).toEqual([null, 3]);
    expect(live.columns.has('disk_used:/')).toBe(false);
  });

  it('begin a table that is empty', () => {
    const live = emptyTable();

    new Appender(live, 5).add(7, reading(1), all);

    expect(live.times).toEqual([7]);
  });
});

it('summaries leave what is missing aside', () => {
  const values: Column = { avg: [5, 2, null, 4, null], min: [5, 1, null, 4, null], max: [5, 9, null, 4, null] };

  expect(summaryOf(values, 0, 5)).toEqual({ now: 4, min: 1, max: 9 });
  expect(summaryOf(values, 2, 3)).toEqual({ now: null, min: null, max: null });
});

it('the newest value is none when what it is of is gone', () => {
  expect(newest(column([1, 2, null]))).toBe(2);
  expect(newest(column([1, null, null, null]))).toBeNull();
});
