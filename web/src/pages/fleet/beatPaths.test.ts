import { describe, expect, test } from 'vitest';
import { beatPaths, partAt, type Bar } from './beatPaths';

const HOUR = 3_600_000;
const START = Date.parse('2026-11-23T10:00:00.000Z');

const bar: Bar = {
  start: new Date(START).toISOString(),
  beat_seconds: 1800,
  beats: ['unknown', 'online', 'partly', 'offline'],
  uptime_percent: 60,
  outage_count: 1,
  outages: [
    {
      start: new Date(START + HOUR + 600_000).toISOString(),
      end: new Date(START + 2 * HOUR).toISOString(),
      ongoing: true,
    },
  ],
};

test('each state is one path, and states differ in their height', () => {
  const paths = beatPaths(['online', 'offline', 'online', 'partly']);

  expect(Object.keys(paths).sort()).toEqual(['offline', 'online', 'partly']);
  expect(paths.online).toBe('M0.12 10v-10h0.76v10zM2.12 10v-10h0.76v10z');
  expect(paths.partly).toBe('M3.12 10v-7h0.76v7z');
});

describe('the part at a place', () => {
  test('has its time and its state', () => {
    expect(partAt(bar, 0.3)).toEqual({ start: START + HOUR / 2, end: START + HOUR, beat: 'online', outages: [] });
  });

  test('has what of an outage lies in it', () => {
    expect(partAt(bar, 0.6)?.outages).toEqual([
      { start: START + HOUR + 600_000, end: START + 1.5 * HOUR, isOngoing: false },
    ]);
    expect(partAt(bar, 0.99)?.outages).toEqual([{ start: START + 1.5 * HOUR, end: START + 2 * HOUR, isOngoing: true }]);
  });

  test('is one of those that there are', () => {
    expect(partAt(bar, -1)?.beat).toBe('unknown');
    expect(partAt(bar, 1)?.beat).toBe('offline');
    expect(partAt({ ...bar, beats: [] }, 0.5)).toBeNull();
  });
});
