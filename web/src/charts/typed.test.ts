import { describe, expect, it } from 'vitest';
import { typed, type Reader } from './typed';

// A Tuesday, 04:10.
const NOW = Date.UTC(2026, 10, 24, 4, 10) / 1000;
const UTC: Reader = { now: NOW, zone: 'utc', isMonthFirst: false };

function read(text: string, reader = UTC): string {
  const found = typed(text, reader);
  if ('fault' in found) return found.fault;
  const { range } = found;
  if (range.kind === 'live') return `last ${range.seconds}`;
  const written = (seconds: number) => new Date(seconds * 1000).toISOString().slice(0, 16).replace('T', ' ');
  return `${written(range.from)} > ${written(range.to)}`;
}

describe('a length', () => {
  it.each([
    ['2 d', 172_800],
    ['2d', 172_800],
    ['90 min', 5_400],
    ['1h 30m', 5_400],
    ['1 h 30 min', 5_400],
    ['last 3 hours', 10_800],
    ['last hour', 3_600],
    ['past 45 seconds', 45],
    ['letzte 2 Tage', 172_800],
    ['letzte Stunde', 3_600],
    ['eine Stunde', 3_600],
    ['1.5 h', 5_400],
    ['3 Wochen', 1_814_400],
    ['1 s', 10],
  ])('%s follows the present', (text, seconds) => {
    expect(read(text)).toBe(`last ${seconds}`);
  });
});

describe('from one time to another', () => {
  const yesterday = '2026-11-23 03:00 > 2026-11-23 04:00';
  it.each([
    ['yesterday 03:00 to 04:00', yesterday],
    ['Yesterday 3am - 4am', yesterday],
    ['yesterday from 3 to 4', yesterday],
    ['from yesterday 03:00 until yesterday 04:00', yesterday],
    ['gestern 3 bis 4 Uhr', yesterday],
    ['gestern von 03:00 bis 04:00', yesterday],
    ['von gestern 03:00 bis 04:00', yesterday],
    ['zwischen gestern 3 Uhr und 4 Uhr', yesterday],
    ['2026-11-23 03:00 to 2026-11-23 04:00', yesterday],
    ['2026-11-23T03:00 – 04:00', yesterday],
    ['23.11. 03:00 bis 04:00', yesterday],
    ['03:00-04:00', '2026-11-24 03:00 > 2026-11-24 04:00'],
    ['05:00 to 06:00', '2026-11-23 05:00 > 2026-11-23 06:00'],
    ['yesterday 23:00 to 01:00', '2026-11-23 23:00 > 2026-11-24 01:00'],
    ['03:00 to 04:00 yesterday', yesterday],
    ['monday to tuesday', '2026-11-23 00:00 > 2026-11-24 04:10'],
    ['20 Nov to 22 Nov', '2026-11-20 00:00 > 2026-11-23 00:00'],
    ['November 20th to November 22nd', '2026-11-20 00:00 > 2026-11-23 00:00'],
    ['3h ago to now', '2026-11-24 01:10 > 2026-11-24 04:10'],
    ['3 hours ago to 1 hour ago', '2026-11-24 01:10 > 2026-11-24 03:10'],
    ['vor 3 Stunden bis jetzt', '2026-11-24 01:10 > 2026-11-24 04:10'],
    ['-3h to now', '2026-11-24 01:10 > 2026-11-24 04:10'],
    ['now-3h to now-1h', '2026-11-24 01:10 > 2026-11-24 03:10'],
    ['since yesterday', '2026-11-23 00:00 > 2026-11-24 04:10'],
    ['seit gestern 12:00', '2026-11-23 12:00 > 2026-11-24 04:10'],
    ['since 3 h ago', '2026-11-24 01:10 > 2026-11-24 04:10'],
    ['yesterday to now', '2026-11-23 00:00 > 2026-11-24 04:10'],
    ['noon to 3pm yesterday', '2026-11-23 12:00 > 2026-11-23 15:00'],
  ])('%s', (text, expected) => {
    expect(read(text)).toBe(expected);
  });
});

describe('a day, a week, a month', () => {
  it.each([
    ['today', '2026-11-24 00:00 > 2026-11-24 04:10'],
    ['yesterday', '2026-11-23 00:00 > 2026-11-24 00:00'],
    ['the day before yesterday', '2026-11-22 00:00 > 2026-11-23 00:00'],
    ['vorgestern', '2026-11-22 00:00 > 2026-11-23 00:00'],
    ['monday', '2026-11-23 00:00 > 2026-11-24 00:00'],
    ['last monday', '2026-11-23 00:00 > 2026-11-24 00:00'],
    ['last tuesday', '2026-11-17 00:00 > 2026-11-18 00:00'],
    ['letzten Mittwoch', '2026-11-18 00:00 > 2026-11-19 00:00'],
    ['last week', '2026-11-16 00:00 > 2026-11-23 00:00'],
    ['diese Woche', '2026-11-23 00:00 > 2026-11-24 04:10'],
    ['last month', '2026-10-01 00:00 > 2026-11-01 00:00'],
    ['letztes Jahr', '2025-01-01 00:00 > 2026-01-01 00:00'],
    ['23.11.', '2026-11-23 00:00 > 2026-11-24 00:00'],
    ['23.11.2026', '2026-11-23 00:00 > 2026-11-24 00:00'],
    ['24 December', '2025-12-24 00:00 > 2025-12-25 00:00'],
    ['24. Dezember 2025', '2025-12-24 00:00 > 2025-12-25 00:00'],
    ['last night', '2026-11-23 22:00 > 2026-11-24 04:10'],
    ['gestern Abend', '2026-11-23 18:00 > 2026-11-24 00:00'],
    ['yesterday afternoon', '2026-11-23 12:00 > 2026-11-23 18:00'],
  ])('%s', (text, expected) => {
    expect(read(text)).toBe(expected);
  });
});

it('shows what was around a time', () => {
  expect(read('yesterday 03:12')).toBe('2026-11-23 02:57 > 2026-11-23 03:27');
  expect(read('gestern um 3 Uhr')).toBe('2026-11-23 03:00 > 2026-11-23 04:00');
  expect(read('3pm')).toBe('2026-11-23 15:00 > 2026-11-23 16:00');
  expect(read('04:05')).toBe('2026-11-24 03:50 > 2026-11-24 04:10');
});

it('reads dates with slashes as their reader does', () => {
  expect(read('3/4/2026')).toBe('2026-04-03 00:00 > 2026-04-04 00:00');
  expect(read('3/4/2026', { ...UTC, isMonthFirst: true })).toBe('2026-03-04 00:00 > 2026-03-05 00:00');
});

it('says what is wrong', () => {
  for (const text of [
    '',
    '   ',
    'soon',
    '25:00',
    '31.02.',
    '2026-13-01',
    '3 bananas',
    'to',
    'yesterday yesterday',
    'x'.repeat(5_000),
  ])
    expect(read(text)).toBe('unknown');
  expect(read('2026-12-01')).toBe('future');
  expect(read('2026-11-23 04:00 to 2026-11-23 03:00 2026-11-22')).toBe('unknown');
  expect(read('2026-11-23 to 2026-11-22')).toBe('order');
});

it('follows the clocks of the zone over the change to winter time', () => {
  const day = typed('2026-10-25', { now: NOW, zone: 'local', isMonthFirst: false });

  const begin = new Date(2026, 9, 25).getTime() / 1000;
  const end = new Date(2026, 9, 26).getTime() / 1000;
  expect(day).toEqual({ range: { kind: 'fixed', from: begin, to: end } });
});
