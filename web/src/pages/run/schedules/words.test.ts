import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { speak, translated } from '../../../text/catalogue';
import { preferences } from '../../../text/preferences.svelte';
import { cronWords, stateOf } from './words';

beforeEach(() => (preferences.clock = '24'));
afterEach(() => speak('en', 'en-US'));

describe('a cron expression in words', () => {
  it('says when it is due', () => {
    speak('en', 'en-GB');

    expect([
      cronWords('* * * * *'),
      cronWords('*/15 * * * *'),
      cronWords('5,35 * * * *'),
      cronWords('0 */2 * * *'),
      cronWords('0 * * * *'),
      cronWords('30 */2 * * *'),
      cronWords('0 3 * * *'),
      cronWords('0 3,15 * * *'),
      cronWords('30 9 * * MON-FRI'),
      cronWords('0 0 * * 0,3'),
      cronWords('0 0 1 * *'),
      cronWords('0 0 1,15 1,7 *'),
      cronWords('0 0 13 * FRI'),
      cronWords('0 0 * 12 *'),
      cronWords('*/10 9-17 * * 1-5'),
      cronWords('0,30 8-11 * * *'),
      cronWords('* 1,5 * * *'),
    ]).toMatchInlineSnapshot(`
      [
        "Every minute",
        "Every 15 minutes",
        "At minutes 5 and 35 of every hour",
        "Every 2 hours",
        "Every hour",
        "Every 2 hours, at minute 30",
        "Every day at 03:00",
        "Every day at 03:00 and 15:00",
        "Monday to Friday at 09:30",
        "Every Wednesday and Sunday at 00:00",
        "On day 1 of every month at 00:00",
        "On days 1 and 15 of January and July at 00:00",
        "On day 13 of every month and every Friday at 00:00",
        "Every day in December at 00:00",
        "Every 10 minutes from 09:00 to 17:59, Monday to Friday",
        "At minutes 0 and 30 of every hour from 08:00 to 11:59",
        "Every minute, in the hours 1 and 5",
      ]
    `);
  });

  it('says every so many minutes or hours only where it is as long from one hour or day to the next', () => {
    speak('en', 'en-GB');

    expect([
      cronWords('*/1 * * * *'),
      cronWords('0 */1 * * *'),
      cronWords('30 */1 * * *'),
      cronWords('*/45 * * * *'),
      cronWords('*/60 * * * *'),
      cronWords('*/90 * * * *'),
      cronWords('0 */9 * * *'),
      cronWords('0 */24 * * *'),
      cronWords('15,45 */9 * * *'),
      cronWords('10,20,30 */9 * * *'),
      cronWords('*/15 */9 * * *'),
      cronWords('*/45 */2 * * *'),
      cronWords('*/7 3 * * *'),
      cronWords('0 9-17/2 * * *'),
    ]).toMatchInlineSnapshot(`
      [
        "Every minute",
        "Every hour",
        "Every hour, at minute 30",
        "At minutes 0 and 45 of every hour",
        "Every hour",
        "Every hour",
        "Every day at 00:00, 09:00 and 18:00",
        "Every day at 00:00",
        "Every day at 00:15, 00:45, 09:15, 09:45, 18:15 and 18:45",
        "At minutes 10, 20 and 30 of every hour, in the hours 0, 9 and 18",
        "Every 15 minutes, in the hours 0, 9 and 18",
        "Every 2 hours, at minutes 0 and 45",
        "At minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56 of every hour from 03:00 to 03:59",
        "Every day at 09:00, 11:00, 13:00, 15:00 and 17:00",
      ]
    `);
  });

  it('says so in German', async () => {
    speak('de', 'de-DE');
    await translated();

    expect([
      cronWords('*/15 * * * *'),
      cronWords('0 3 * * *'),
      cronWords('30 9 * * MON-FRI'),
      cronWords('0 0 * * 0,3'),
      cronWords('0 0 1 * *'),
      cronWords('0 0 1,15 1,7 *'),
      cronWords('0 */2 * * *'),
      cronWords('0 0 * 12 *'),
    ]).toMatchInlineSnapshot(`
      [
        "Alle 15 Minuten",
        "Jeden Tag um 03:00",
        "Montag bis Freitag um 09:30",
        "Jeden Mittwoch und Sonntag um 00:00",
        "Am Tag 1 jedes Monats um 00:00",
        "An den Tagen 1 und 15 der Monate Januar und Juli um 00:00",
        "Alle 2 Stunden",
        "Jeden Tag im Dezember um 00:00",
      ]
    `);
  });

  it('is itself where it is none', () => {
    expect(cronWords('each day')).toBe('each day');
  });
});

it('a schedule that is due no more has ended, unless it is paused', () => {
  expect(stateOf({ enabled: true, next_at: '2026-11-27T03:00:00Z' })).toBe('active');
  expect(stateOf({ enabled: true, next_at: null })).toBe('ended');
  expect(stateOf({ enabled: false, next_at: null })).toBe('paused');
});
