import { expect, test } from 'vitest';
import type { Alert } from '../../api/types';
import {
  aroundOf,
  before,
  firingOf,
  isCoarse,
  limitsOf,
  linesOf,
  marksOf,
  peakOf,
  subjectOf,
  within,
} from './incident';

const HOUR = 3_600;
const start = Date.parse('2026-11-21T03:00:00Z') / 1000;
const iso = (seconds: number) => new Date(seconds * 1000).toISOString();

function alert(more: Partial<Alert> = {}): Alert {
  return {
    id: 'a',
    owner: { id: 'u', username: 'ada' },
    threshold_id: 't',
    server_id: 's',
    metric_type: 'cpu',
    series: null,
    unit: null,
    target: null,
    worst_target: null,
    threshold_value: 90,
    clear_value: 80,
    comparison: 'gt',
    duration_seconds: 300,
    value: 95,
    peak_value: 99,
    status: 'resolved',
    severity: 'critical',
    message: 'cpu is 95 % on db-1',
    silenced: false,
    triggered_at: iso(start),
    acknowledged_at: null,
    acknowledged_by: null,
    resolved_at: iso(start + HOUR),
    resolved_by: 'recovery',
    ...more,
  };
}

test('an alert is about the series of its worst target', () => {
  expect(subjectOf(alert())).toMatchObject({ name: 'cpu_percent', unit: 'percent' });
  expect(subjectOf(alert({ metric_type: 'disk', worst_target: '/var' }))?.name).toBe('disk_percent:/var');
  expect(subjectOf(alert({ metric_type: 'swap' }))).toMatchObject({ unit: 'percent', isSwap: true });
  expect(subjectOf(alert({ metric_type: 'series', series: 'fan_speed', unit: 'rpm', target: 'a:b' }))).toMatchObject({
    name: 'fan_speed:a:b',
    unit: 'rpm',
  });
  expect(subjectOf(alert({ metric_type: 'offline' }))).toBeNull();
});

test('the chart shows what led to it, and nothing of the future', () => {
  const over = aroundOf(alert(), start + 9 * HOUR);
  expect(over).toEqual({ from: start - 300 - HOUR / 3, to: start + HOUR + HOUR / 3 });

  const open = alert({ resolved_at: null, status: 'active' });
  expect(aroundOf(open, start + 60).to).toBe(start + 60);
  expect(firingOf(open, start - 5)).toEqual({ from: start, to: start });
});

const times = [start - 60, start, start + 60, start + HOUR + 60];
const column = { avg: [10, 95, 99, 20], min: [9, 94, 90, 19], max: [11, 96, 100, 21] };

test('what fired is the part of the line between its beginning and its end', () => {
  const firing = { from: start, to: start + HOUR };
  expect(within(column, times, firing).avg).toEqual([null, 95, 99, null]);

  const table = { resolution: 60, times, columns: new Map([['cpu_percent', column]]) };
  const [whole, fired] = linesOf('CPU', table, ['cpu_percent'], firing);
  expect(whole?.column).toBe(column);
  expect(fired).toMatchObject({ colour: '--series-2', isFilled: true });
  expect(whole?.label).toBe('CPU');
  expect(linesOf('Disk', table, ['disk_percent:/'], firing)).toEqual([]);
});

test('the worst moment is the highest, or the lowest of what fires below', () => {
  const firing = { from: start, to: start + HOUR };
  expect(peakOf(alert(), column, times, firing)).toBe(start + 60);
  expect(peakOf(alert({ comparison: 'lt' }), column, times, firing)).toBe(start + 60);
  expect(peakOf(alert(), undefined, times, firing)).toBeNull();
  expect(peakOf(alert(), column, times, { from: 0, to: 1 })).toBeNull();
});

test('the limits are where it fires and where it recovers', () => {
  // Their labels leave the newest values free.
  expect(limitsOf(alert()).map(({ value, shade, edge }) => [value, shade, edge])).toEqual([
    [90, 'above', 'left'],
    [80, undefined, 'left'],
  ]);
  expect(limitsOf(alert({ comparison: 'lt', clear_value: null })).map(({ shade }) => shade)).toEqual(['below']);
});

test('what happened around it stands beside when it fired and ended, which is there once', () => {
  const around = ['resolved:a', 'event:e1', 'alert:a', 'alert:b'].map((id) => ({
    ...{ id, at: start, kind: 'agent' as const, tone: 'ok' as const, title: id },
  }));

  expect(marksOf(alert(), around).map(({ id }) => id)).toEqual(['fired', 'ended', 'event:e1', 'alert:b']);
  expect(marksOf(alert({ resolved_at: null }), []).map(({ id }) => id)).toEqual(['fired']);
});

test('how often it came counts the thirty days before', () => {
  const day = 24 * HOUR;
  const earlier = [
    alert({ triggered_at: iso(start - day), resolved_at: iso(start - day + 600) }),
    alert({ triggered_at: iso(start - 2 * day), resolved_at: iso(start - 2 * day + 1_200) }),
    alert({ triggered_at: iso(start - 40 * day), resolved_at: iso(start - 39 * day) }),
  ];

  expect(before(alert(), earlier)).toEqual({ count: 2, meanMs: 900_000 });
  expect(before(alert(), [])).toEqual({ count: 0, meanMs: 0 });
});

test('averages are called so where samples are gone, not where a long time is shown', () => {
  const short = { from: start, to: start + HOUR };
  const table = (resolution: number, spread: number) => ({
    resolution,
    times: [start],
    columns: new Map([['cpu_percent', { avg: [5], min: [5 - spread], max: [5 + spread] }]]),
  });

  expect(isCoarse(table(900, 1), short, 600)).toBe(true);
  expect(isCoarse(table(60, 1), short, 600)).toBe(true);
  // Samples of an agent that measures once a minute.
  expect(isCoarse(table(60, 0), short, 600)).toBe(false);
  expect(isCoarse(table(900, 1), { from: start, to: start + 200 * HOUR }, 600)).toBe(false);
});
