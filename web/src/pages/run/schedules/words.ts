// A cron expression, and what became of runs, as people say it. Pure but for the language.
import * as c from '#messages/cron';
import * as m from '#messages/schedules';
import type { ScheduleRun, ScheduleSummary } from '../../../api/types';
import { duration, list } from '../../../lib/format';
import { cycle } from '../../../lib/times';
import { locale } from '../../../text/catalogue';
import type { Tone } from '../../../ui/Badge.svelte';
import { readCron, type Cron, type Part } from './cron';

/** More times of a day are not listed. */
const MOST_TIMES = 6;
/** So many in a row are a range. */
const LEAST_RANGE = 3;

/** `Every day at 03:00`; the expression itself where it is none. */
export function cronWords(text: string): string {
  const cron = readCron(text);
  return 'fault' in cron ? text : capital(sentenceOf(cron));
}

const capital = (text: string) => text.charAt(0).toLocaleUpperCase(locale()) + text.slice(1);

function sentenceOf(cron: Cron): string {
  const { hours, minutes } = cron;
  const days = daysOf(cron);
  const isListed = [hours, minutes].every((part) => !part.isAny && part.step === null);
  if (isListed && hours.values.length * minutes.values.length <= MOST_TIMES) {
    const times = hours.values.flatMap((hour) => minutes.values.map((minute) => clockTime(hour, minute)));
    return c.dayAt({ days: days ?? c.everyDay(), times: list(times) });
  }
  const time = timeOf(cron);
  return days === null ? time : c.timeOn({ time, days });
}

function timeOf({ hours, minutes }: Cron): string {
  const listed = list(minutes.values.map(String));
  const isEach = minutes.isAny || minutes.step !== null;
  const isFull = minutes.values.length === 1 && minutes.values[0] === 0;
  if (hours.step !== null && isFull) return c.everyFullHours({ count: hours.step });
  if (hours.step !== null && !isEach)
    return c.everyHours({ count: hours.step, times: minutes.values.length, minutes: listed });
  const time = minutes.isAny
    ? c.everyMinute()
    : minutes.step !== null
      ? c.everyMinutes({ count: minutes.step })
      : isFull
        ? c.everyHour()
        : c.minutesOfHour({ count: minutes.values.length, minutes: listed });
  if (hours.isAny) return time;
  const [hour, ...others] = hours.values;
  const [first, last] = others.length === 0 ? [hour, hour] : (rangeOf(hours.values) ?? []);
  if (first === undefined || last === undefined) return c.inHours({ time, hours: list(hours.values.map(String)) });
  return c.within({ time, from: clockTime(first, 0), to: clockTime(last, 59) });
}

/** Which days; null where it is every one. */
function daysOf({ days, months, weekdays }: Cron): string | null {
  const ofMonths = months.isAny ? null : list(months.values.map(monthName));
  const onDays = days.isAny ? null : daysOfMonth(days, ofMonths);
  const onWeekdays = weekdays.isAny ? null : weekdaysOf(weekdays);
  if (onDays !== null && onWeekdays !== null)
    return c.either({ days: onDays, weekdays: inMonths(onWeekdays, ofMonths) });
  if (onDays !== null) return onDays;
  if (onWeekdays !== null) return inMonths(onWeekdays, ofMonths);
  return ofMonths === null ? null : inMonths(c.everyDay(), ofMonths);
}

const inMonths = (days: string, months: string | null) => (months === null ? days : c.inMonths({ days, months }));

function daysOfMonth({ values }: Part, months: string | null): string {
  const told = { count: values.length, days: list(values.map(String)) };
  return months === null ? c.onDays(told) : c.onDaysOf({ ...told, months });
}

function weekdaysOf({ values }: Part): string {
  // A week begins on Monday.
  const sorted = values.map((day) => (day === 0 ? 7 : day)).sort((a, b) => a - b);
  const [first, last] = rangeOf(sorted) ?? [];
  if (first !== undefined && last !== undefined)
    return c.weekdayRange({ from: weekdayName(first), to: weekdayName(last) });
  return c.everyWeekday({ weekdays: list(sorted.map(weekdayName)) });
}

function rangeOf(values: readonly number[]): [number, number] | null {
  const [first, last] = [values[0], values.at(-1)];
  if (first === undefined || last === undefined || values.length < LEAST_RANGE) return null;
  return last - first === values.length - 1 ? [first, last] : null;
}

const named = (at: number, how: Intl.DateTimeFormatOptions) =>
  new Intl.DateTimeFormat(locale(), { ...how, timeZone: 'UTC' }).format(at);

const clockTime = (hour: number, minute: number) =>
  named(Date.UTC(2024, 0, 1, hour, minute), { hour: '2-digit', minute: '2-digit', hourCycle: cycle() });

/** The first of January 2024 was a Monday. */
const weekdayName = (day: number) => named(Date.UTC(2024, 0, day), { weekday: 'long' });

const monthName = (month: number) => named(Date.UTC(2024, month - 1, 1), { month: 'long' });

/** A time by the clock of another zone, with the day of the week. */
export function timeIn(at: number, timeZone: string): string {
  return new Intl.DateTimeFormat(locale(), {
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: cycle(),
    timeZone,
  }).format(at);
}

export type Outcome = ScheduleRun['outcome'];

export const OUTCOMES: Record<Outcome, { label: () => string; short: () => string; tone: Tone }> = {
  running: { label: m.running, short: m.running, tone: 'accent' },
  succeeded: { label: m.succeeded, short: m.succeeded, tone: 'ok' },
  failed: { label: m.failed, short: m.failed, tone: 'bad' },
  still_running: { label: m.stillRunning, short: m.skipped, tone: 'warn' },
  no_server: { label: m.noServer, short: m.skipped, tone: 'warn' },
  quota_exceeded: { label: m.quotaExceeded, short: m.skipped, tone: 'warn' },
};

export type State = 'active' | 'paused' | 'ended';

/** Whether it will run again. */
export function stateOf(schedule: Pick<ScheduleSummary, 'enabled' | 'next_at'>): State {
  if (!schedule.enabled) return 'paused';
  return schedule.next_at ? 'active' : 'ended';
}

export const STATES: Record<State, { label: () => string; tone: Tone }> = {
  active: { label: m.active, tone: 'ok' },
  paused: { label: m.paused, tone: 'idle' },
  ended: { label: m.ended, tone: 'idle' },
};

/** How long until it runs: `in 3 h 20 min`. */
export function nextWords(at: string, now: number): string {
  const left = Date.parse(at) - now;
  return left < 60_000 ? m.soon() : m.inTime({ duration: duration(left) });
}
