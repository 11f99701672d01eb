// The examples of signing/src/repeat.rs, whose rules these are, and more.
import { describe, expect, it } from 'vitest';
import { readCron, type Cron } from './cron';
import { isZone, nextTimes } from './due';

const cron = (text: string) => readCron(text) as Cron;

function due(text: string, zone: string, from: string, count: number): string[] {
  return nextTimes(cron(text), zone, Date.parse(from), count).map((at) => new Date(at).toISOString().slice(0, 16));
}

describe('a cron expression', () => {
  it('is due at local times', () => {
    expect(due('0 3 * * *', 'Europe/Berlin', '2026-01-10T12:00:00Z', 1)).toEqual(['2026-01-11T02:00']);
    expect(due('0 3 * * *', 'Europe/Berlin', '2026-07-10T12:00:00Z', 1)).toEqual(['2026-07-11T01:00']);
    expect(due('30 9 * * MON-FRI', 'UTC', '2026-11-26T10:00:00Z', 2)).toEqual(['2026-11-27T09:30', '2026-11-30T09:30']);
    expect(due('0 0 13 * FRI', 'UTC', '2026-11-08T00:00:00Z', 2)).toEqual(['2026-11-13T00:00', '2026-11-20T00:00']);
    expect(due('0 0 * * 7', 'UTC', '2026-11-26T10:00:00Z', 1)).toEqual(['2026-11-29T00:00']);
    expect(due('0 12 29 2 *', 'UTC', '2096-03-01T00:00:00Z', 1)).toEqual(['2104-02-29T12:00']);
  });

  it('is due when the clocks have jumped over its one time', () => {
    const times = due('30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00:00Z', 2);

    expect(times).toEqual(['2026-03-29T01:00', '2026-03-30T00:30']);
  });

  it('is due the first time where the clocks show its one time twice', () => {
    const times = due('30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00:00Z', 2);

    expect(times).toEqual(['2026-10-25T00:30', '2026-10-26T01:30']);
  });

  it('follows the clock with steps: not in the gap, and in both hours', () => {
    const spring = due('*/30 * * * *', 'Europe/Berlin', '2026-03-29T00:29:00Z', 3);
    const autumn = due('*/30 * * * *', 'Europe/Berlin', '2026-10-24T23:59:00Z', 5);

    expect(spring).toEqual(['2026-03-29T00:30', '2026-03-29T01:00', '2026-03-29T01:30']);
    expect(autumn).toEqual([
      '2026-10-25T00:00',
      '2026-10-25T00:30',
      '2026-10-25T01:00',
      '2026-10-25T01:30',
      '2026-10-25T02:00',
    ]);
  });

  it('is not due at its end or later', () => {
    const until = Date.parse('2026-11-28T03:00:00Z');

    expect(nextTimes(cron('0 3 * * *'), 'UTC', Date.parse('2026-11-26T10:00:00Z'), 5, until).length).toBe(1);
  });

  it('has a zone of the IANA database', () => {
    expect(['UTC', 'Europe/Berlin', 'America/Argentina/Ushuaia'].every(isZone)).toBe(true);
    expect(['', '+01:00', 'Berlin', 'Mars/Olympus', 'Europe/Berlin ; x'].some(isZone)).toBe(false);
  });
});
