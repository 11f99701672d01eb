import { expect, test } from 'vitest';
import { clockText, momentText, moved, partAt, readClock, readDay, readMoment } from './writtenTime';

const always = () => true;

test.each([
  ['2026-11-21 03:00', '2026-11-21T03:00:00'],
  ['2026-11-21T03:00', '2026-11-21T03:00:00'],
  [' 2026-1-2  3:04:05 ', '2026-01-02T03:04:05'],
  ['2026-11-21 03:00 PM', '2026-11-21T15:00:00'],
  ['2026-11-21, 12:30am', '2026-11-21T00:30:00'],
  ['2026-11-21', '2026-11-21T00:00:00'],
])('%s is a time', (text, local) => {
  expect(readMoment(text, always)).toEqual({ local });
});

test.each(['', 'tomorrow', '21.11.2026 03:00', '2026-11-21 3', '2026-11-21 03:00 XM'])('%s is none', (text) => {
  expect(readMoment(text, always)).toEqual({ fault: 'form' });
});

test.each(['2026-11-21 24:00', '2026-11-21 03:60', '2026-11-21 13:00 PM', '2026-11-21 00:10 AM'])(
  '%s is on no clock',
  (text) => {
    expect(readMoment(text, always)).toEqual({ fault: 'missing' });
  },
);

test('a day that no calendar has is refused', () => {
  expect(readMoment('2026-02-30 03:00', () => false)).toEqual({ fault: 'missing' });
});

test('a time of a day', () => {
  expect(readClock('10:00 pm')).toEqual({ local: '22:00' });
  expect(readClock('22:00')).toEqual({ local: '22:00' });
  expect(clockText('22:00', 'h12')).toBe('10:00 PM');
  expect(clockText('00:05:09', 'h12')).toBe('12:05:09 AM');
});

test('a time is shown by the chosen clock', () => {
  expect(momentText('2026-11-21T15:00:00', 'h23')).toBe('2026-11-21 15:00');
  expect(momentText('2026-11-21T15:00:07', 'h23')).toBe('2026-11-21 15:00:07');
  expect(momentText('2026-11-21T15:00', 'h12')).toBe('2026-11-21 03:00 PM');
  expect(momentText('what is no time', 'h12')).toBe('what is no time');
});

test('arrows change the part at the caret', () => {
  const text = '2026-11-21 03:00';
  expect([2, 6, 10, 12, 15].map((place) => partAt(text, place))).toEqual(['year', 'month', 'day', 'hour', 'minute']);
  expect(partAt('22:00', 1)).toBe('hour');
  expect(moved('2026-01-31T03:00:00', 'month', 1)).toBe('2026-02-28T03:00:00');
  expect(moved('2024-02-29T03:00:00', 'year', 1)).toBe('2025-02-28T03:00:00');
  expect(moved('2026-12-31T23:59:00', 'minute', 1)).toBe('2027-01-01T00:00:00');
  expect(moved('no time', 'day', 1)).toBe('no time');
});

test.each([
  ['2026-11-21', { local: '2026-11-21' }],
  [' 2026-1-2 ', { local: '2026-01-02' }],
  ['2026-11-21 03:00', { fault: 'form' }],
  ['11/21/2026', { fault: 'form' }],
  ['2026-02-30', { fault: 'missing' }],
  ['2026-13-01', { fault: 'missing' }],
])('%s as a day', (text, read) => {
  expect(readDay(text)).toEqual(read);
});
