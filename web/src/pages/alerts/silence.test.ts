import { expect, test } from 'vitest';
import type { Silence } from '../../api/types';
import { bodyOf, draftOf, lengthWords, newDraft, sorted, stateOf, whenWords } from './silence';

const now = Date.parse('2026-11-21T10:00:00Z');
const once: Silence = {
  id: '019aa0b8-7d1c-7e3a-9c61-0d5f8f3f2b10',
  server_id: null,
  tag: 'lab',
  all: false,
  reason: 'New disks',
  starts_at: '2026-11-21T09:00:00.000Z',
  ends_at: '2026-11-21T12:00:00.000Z',
  schedule: null,
  active: true,
  active_until: '2026-11-21T12:00:00.000Z',
  created_by: 'ada',
  created_at: '2026-11-21T09:00:00.000Z',
  updated_at: '2026-11-21T09:00:00.000Z',
};
const weekly: Silence = {
  ...once,
  tag: null,
  all: true,
  starts_at: null,
  ends_at: null,
  schedule: { weekdays: ['sat', 'sun'], start: '22:00', duration_minutes: 120, time_zone: 'Europe/Berlin' },
  active: false,
  active_until: null,
};

test('one that begins now leaves its beginning to the service', () => {
  expect(bodyOf({ ...newDraft('some-id'), lasts: 30 }, now)).toEqual({
    server_id: 'some-id',
    tag: null,
    all: false,
    reason: '',
    starts_at: null,
    ends_at: '2026-11-21T10:30:00.000Z',
    schedule: null,
  });
});

test('one that comes later lasts from its beginning', () => {
  const draft = { ...newDraft(), startsAt: '2026-11-22T08:00', lasts: 60 };
  const body = bodyOf(draft, now);

  expect(Date.parse(body.ends_at ?? '') - Date.parse(body.starts_at ?? '')).toBe(3_600_000);
});

test('a weekly one has its days in their order, and no bounds by default', () => {
  const body = bodyOf({ ...newDraft(), every: 'week', weekdays: ['sun', 'mon'] }, now);

  expect(body.schedule?.weekdays).toEqual(['mon', 'sun']);
  expect(body.starts_at).toBeNull();
  expect(body.ends_at).toBeNull();
  expect(body.all).toBe(true);
});

test('what is read into the form comes out the same', () => {
  for (const silence of [once, weekly]) {
    const { server_id, tag, all, reason, starts_at, ends_at, schedule } = silence;
    expect(bodyOf(draftOf(silence), now)).toEqual({ server_id, tag, all, reason, starts_at, ends_at, schedule });
  }
});

test('a silence holds, comes, or is over', () => {
  expect(stateOf(once, now)).toBe('holds');
  expect(stateOf(once, Date.parse('2026-11-21T12:00:01Z'))).toBe('over');
  expect(stateOf({ ...once, active: false, starts_at: '2026-11-21T11:00:00Z' }, now)).toBe('coming');
  expect(stateOf({ ...once, active: false }, now)).toBe('holds');
  expect(stateOf(weekly, now)).toBe('coming');
  expect(stateOf({ ...weekly, active: true, active_until: '2026-11-21T11:00:00Z' }, now)).toBe('holds');
});

test('what holds stands first, what is over last', () => {
  const over = { ...once, id: 'over', ends_at: '2026-11-20T00:00:00Z' };

  expect(sorted([over, weekly, once], now).map(({ state }) => state)).toEqual(['holds', 'coming', 'over']);
});

test('words say when it holds', () => {
  expect(whenWords(weekly, now)).toBe('Saturday and Sunday at 22:00 for 2 h (Europe/Berlin)');
  const schedule = { weekdays: ['mon' as const], start: '01:30', duration_minutes: 90, time_zone: 'America/New_York' };
  expect(whenWords({ ...weekly, schedule }, now)).toBe('Every Mon at 01:30 for 1 h 30 min (America/New York)');
  expect(whenWords(once, now)).toMatch(/ to /);
});

test('lengths are written as people say them', () => {
  expect(lengthWords(30)).toBe('30 minutes');
  expect(lengthWords(60)).toBe('1 hour');
  expect(lengthWords(1440)).toBe('24 hours');
  expect(lengthWords(4320)).toBe('3 days');
});
