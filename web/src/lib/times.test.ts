// @vitest-environment jsdom
import { afterEach, describe, expect, it } from 'vitest';
import { preferences } from '../text/preferences.svelte';
import { fromLocal, toLocal } from './localtime';
import { ago, fullTime, minuteOf, moment, written } from './times';

const AFTERNOON = '2026-11-20T15:04:05Z';

afterEach(() => {
  preferences.clock = 'auto';
  preferences.zone = 'local';
});

describe('a time', () => {
  it('is written on the clock that was chosen, everywhere', () => {
    preferences.zone = 'utc';
    const now = Date.parse(AFTERNOON) + 60_000;
    const all = () => [moment(AFTERNOON, now), minuteOf(AFTERNOON, now), written('second', AFTERNOON)];

    preferences.clock = '24';
    expect(all()).toEqual(['15:04:05', '15:04', '15:04:05']);
    preferences.clock = '12';
    expect(all().map((text) => text.replace('\u202f', ' '))).toEqual(['03:04:05 PM', '03:04 PM', '03:04:05 PM']);
  });

  it('has its day unless that is today', () => {
    preferences.zone = 'utc';
    preferences.clock = '24';
    const tomorrow = Date.parse(AFTERNOON) + 86_400_000;

    expect(moment(AFTERNOON, tomorrow)).toBe('Nov 20, 15:04');
    expect(minuteOf(AFTERNOON, tomorrow)).toBe('Fri, Nov 20, 15:04');
    expect(fullTime(AFTERNOON)).toBe('Nov 20, 2026, 15:04:05');
  });

  it('stands in a field as it stands beside it', () => {
    preferences.zone = 'utc';

    expect(toLocal(AFTERNOON)).toBe('2026-11-20T15:04');
    expect(fromLocal('2026-11-20T15:04')).toBe('2026-11-20T15:04:00.000Z');
  });
});

it('a choice is kept in the browser', () => {
  preferences.clock = '12';
  preferences.zone = 'utc';
  expect([localStorage.getItem('clock'), localStorage.getItem('zone')]).toEqual(['12', 'utc']);

  preferences.clock = 'auto';
  preferences.zone = 'local';
  expect([localStorage.getItem('clock'), localStorage.getItem('zone')]).toEqual([null, null]);
});

it('the past is said in its largest unit', () => {
  const now = Date.parse('2026-11-20T12:00:00Z');
  const at = (seconds: number) => ago(now - seconds * 1000, now);

  expect([at(-5), at(1), at(59), at(61), at(7_300), at(200_000)]).toEqual([
    'just now',
    'just now',
    '59 s ago',
    '1 min ago',
    '2 h ago',
    '2 d ago',
  ]);
  expect(ago(null, now)).toBe('never');
});
