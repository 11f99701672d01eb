// How times are written: the one place that knows the clock (12 or 24 hours) and the zone that the reader chose.
import * as m from '#messages/units';
import { locale } from '../text/catalogue';
import { preferences } from '../text/preferences.svelte';

type Time = number | string;

/** What a time is written with; the zone and the clock are added. */
const SHAPES = {
  minute: { hour: '2-digit', minute: '2-digit' },
  second: { hour: '2-digit', minute: '2-digit', second: '2-digit' },
  day: { day: 'numeric', month: 'short' },
  month: { month: 'short', year: 'numeric' },
  date: { day: 'numeric', month: 'short', year: 'numeric' },
  longDay: { weekday: 'long', day: 'numeric', month: 'long' },
  dayMinute: { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' },
  weekdayMinute: { weekday: 'short', day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' },
  weekdaySecond: {
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  },
  full: { dateStyle: 'medium', timeStyle: 'medium' },
} satisfies Record<string, Intl.DateTimeFormatOptions>;

export type Shape = keyof typeof SHAPES;

/** Made once: to make one takes longer than to write a hundred times. */
const formats = new Map<string, Intl.DateTimeFormat>();

function format(shape: Shape): Intl.DateTimeFormat {
  const { clock, zone } = preferences;
  const name = `${shape} ${clock} ${zone} ${locale()}`;
  let known = formats.get(name);
  if (!known) {
    known = new Intl.DateTimeFormat(locale(), {
      ...SHAPES[shape],
      hourCycle: cycle(),
      ...(zone === 'utc' ? { timeZone: 'UTC' } : {}),
    });
    formats.set(name, known);
  }
  return known;
}

/** The clock that times are written by. */
export function cycle(): 'h12' | 'h23' {
  const { clock } = preferences;
  return clock === 'auto' ? ownCycle() : clock === '12' ? 'h12' : 'h23';
}

/** What the reader's own region has, which need not be the one of the language that is spoken. */
function ownCycle(): 'h12' | 'h23' {
  const { hourCycle } = new Intl.DateTimeFormat(undefined, { hour: 'numeric' }).resolvedOptions();
  return hourCycle === 'h11' || hourCycle === 'h12' ? 'h12' : 'h23';
}

/** Milliseconds of a time as the service writes it. */
export function time(moment: Time): number {
  return typeof moment === 'number' ? moment : Date.parse(moment);
}

export function written(shape: Shape, at: Time): string {
  return format(shape).format(time(at));
}

export function writtenParts(shape: Shape, at: Time): Intl.DateTimeFormatPart[] {
  return format(shape).formatToParts(time(at));
}

/** Its year, month, day, hour, minute and second on the reader's clock. */
export function partsOf(at: number): [number, number, number, number, number, number] {
  const date = new Date(at);
  if (preferences.zone === 'local')
    return [
      date.getFullYear(),
      date.getMonth() + 1,
      date.getDate(),
      date.getHours(),
      date.getMinutes(),
      date.getSeconds(),
    ];
  return [
    date.getUTCFullYear(),
    date.getUTCMonth() + 1,
    date.getUTCDate(),
    date.getUTCHours(),
    date.getUTCMinutes(),
    date.getUTCSeconds(),
  ];
}

export function isMidnight(at: number): boolean {
  const [, , , hour, minute, second] = partsOf(at);
  return hour === 0 && minute === 0 && second === 0;
}

/** A time in one shape where it is on the same day as `now`, and in another where it is not. */
export function shortly(at: Time, now: number, today: Shape, otherDay: Shape): string {
  const then = partsOf(time(at));
  const isToday = partsOf(now).every((part, index) => index > 2 || part === then[index]);
  return written(isToday ? today : otherDay, at);
}

/** A time as short as it is clear: without the day when it is today's. */
export function moment(then: Time, now = Date.now()): string {
  return shortly(then, now, 'second', 'dayMinute');
}

/** The same to the minute, with the day of the week. */
export function minuteOf(then: Time, now: number): string {
  return shortly(then, now, 'minute', 'weekdayMinute');
}

/** A time in full, for titles. */
export function fullTime(then: Time): string {
  return written('full', then);
}

/** How long ago, as a person says it: `just now`, `12 s ago`, `3 min ago`, `2 d ago`. */
export function ago(then: Time | null | undefined, now: number): string {
  if (then === null || then === undefined) return m.never();
  const seconds = Math.floor((now - time(then)) / 1000);
  if (seconds < 2) return m.justNow();
  if (seconds < 60) return m.secondsAgo({ count: seconds });
  if (seconds < 3600) return m.minutesAgo({ count: Math.floor(seconds / 60) });
  if (seconds < 86_400) return m.hoursAgo({ count: Math.floor(seconds / 3600) });
  return m.daysAgo({ count: Math.floor(seconds / 86_400) });
}

/** The time zone that times are written in. */
export function zoneName(): string {
  return preferences.zone === 'utc' ? 'UTC' : localZone();
}

/** The time zone of this computer. */
export function localZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC';
}
