// A silence in words, and as a form has it.
import * as m from '#messages/silences';
import type { Silence, SilenceIn } from '../../api/types';
import { duration, list } from '../../lib/format';
import { locale } from '../../text/catalogue';
import { minuteOf, zoneName } from '../../lib/times';
import { fromLocal, toLocal } from '../../lib/localtime';

export const WEEKDAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;
export type Weekday = (typeof WEEKDAYS)[number];

/** The short name of a day: `Mon`. */
export function dayName(day: Weekday): string {
  // The fifth of January 1970 was a Monday.
  const monday = Date.UTC(1970, 0, 5);
  return new Intl.DateTimeFormat(locale(), { weekday: 'short', timeZone: 'UTC' }).format(
    monday + WEEKDAYS.indexOf(day) * 86_400_000,
  );
}

const MINUTE_MS = 60_000;

/** How long a silence that begins now is to hold, for a press of a button. */
export const LENGTHS = [30, 60, 120, 240, 480, 1440, 4320, 10_080];

export interface Draft {
  reach: 'server' | 'tag' | 'all';
  serverId: string;
  tag: string;
  reason: string;
  every: 'once' | 'week';
  /** Of one that holds once: empty for now. */
  startsAt: string;
  /** Of one that holds once: for so many minutes, or null where `endsAt` says when. */
  lasts: number | null;
  endsAt: string;
  weekdays: Weekday[];
  start: string;
  durationMinutes: number;
  zone: string;
  /** Of a weekly one: nothing holds before and after. */
  from: string;
  until: string;
}

export function newDraft(serverId: string | null = null): Draft {
  return {
    reach: serverId ? 'server' : 'all',
    serverId: serverId ?? '',
    tag: '',
    reason: '',
    every: 'once',
    startsAt: '',
    lasts: 60,
    endsAt: '',
    weekdays: [],
    start: '22:00',
    durationMinutes: 120,
    zone: zoneName(),
    from: '',
    until: '',
  };
}

export function draftOf(silence: Silence): Draft {
  const { schedule } = silence;
  const empty = newDraft();
  return {
    ...empty,
    reach: silence.server_id ? 'server' : silence.tag ? 'tag' : 'all',
    serverId: silence.server_id ?? '',
    tag: silence.tag ?? '',
    reason: silence.reason,
    every: schedule ? 'week' : 'once',
    startsAt: schedule ? '' : toLocal(silence.starts_at),
    lasts: schedule ? empty.lasts : null,
    endsAt: schedule ? '' : toLocal(silence.ends_at),
    weekdays: schedule ? [...schedule.weekdays] : [],
    start: schedule?.start ?? empty.start,
    durationMinutes: schedule?.duration_minutes ?? empty.durationMinutes,
    zone: schedule?.time_zone ?? empty.zone,
    from: schedule ? toLocal(silence.starts_at) : '',
    until: schedule ? toLocal(silence.ends_at) : '',
  };
}

/** The silence that a form describes. What is not for it is null, so that a change takes it away. */
export function bodyOf(draft: Draft, now: number): SilenceIn & { all: boolean } {
  const reach = {
    server_id: draft.reach === 'server' ? draft.serverId || null : null,
    tag: draft.reach === 'tag' ? draft.tag.trim() || null : null,
    all: draft.reach === 'all',
  };
  const reason = draft.reason.trim();
  if (draft.every === 'week') {
    const schedule = {
      weekdays: WEEKDAYS.filter((day) => draft.weekdays.includes(day)),
      start: draft.start,
      duration_minutes: draft.durationMinutes,
      time_zone: draft.zone.trim(),
    };
    return { ...reach, reason, starts_at: fromLocal(draft.from), ends_at: fromLocal(draft.until), schedule };
  }
  const starts = fromLocal(draft.startsAt);
  const ends =
    draft.lasts === null
      ? fromLocal(draft.endsAt)
      : new Date((starts ? Date.parse(starts) : now) + draft.lasts * MINUTE_MS).toISOString();
  return { ...reach, reason, starts_at: starts, ends_at: ends, schedule: null };
}

export type State = 'holds' | 'coming' | 'over';

export function stateOf(silence: Silence, now: number): State {
  if (silence.ends_at && Date.parse(silence.ends_at) <= now) return 'over';
  // What the service said holds until then; what had not begun when it was read may have begun since.
  if (silence.active && (!silence.active_until || Date.parse(silence.active_until) > now)) return 'holds';
  const hasBegun = !silence.schedule && silence.starts_at && Date.parse(silence.starts_at) <= now;
  return hasBegun ? 'holds' : 'coming';
}

const ORDER: Record<State, number> = { holds: 0, coming: 1, over: 2 };

/** What holds first, then what comes, then what is over, the latest first. */
export function sorted(silences: Silence[], now: number): { silence: Silence; state: State }[] {
  return silences
    .map((silence) => ({ silence, state: stateOf(silence, now) }))
    .sort(
      (a, b) => ORDER[a.state] - ORDER[b.state] || (b.silence.ends_at ?? '').localeCompare(a.silence.ends_at ?? ''),
    );
}

function daysWords(days: Weekday[]): string {
  const chosen = WEEKDAYS.filter((day) => days.includes(day));
  const key = chosen.join();
  if (chosen.length === 7) return m.everyDay();
  if (key === 'mon,tue,wed,thu,fri') return m.workdays();
  if (key === 'sat,sun') return m.weekend();
  return m.everyDays({ days: list(chosen.map(dayName)) });
}

/** When it holds: `Every Sat at 22:00 for 2 h (Europe/Berlin)`. */
export function whenWords(silence: Silence, now: number): string {
  const { schedule, starts_at, ends_at } = silence;
  if (!schedule) {
    const from = starts_at ? minuteOf(starts_at, now) : m.now();
    return m.fromTo({ from, to: ends_at ? minuteOf(ends_at, now) : m.someTime() });
  }
  const length = duration(schedule.duration_minutes * MINUTE_MS);
  const bounds = [
    starts_at && Date.parse(starts_at) > now ? m.fromTime({ time: minuteOf(starts_at, now) }) : '',
    ends_at ? m.untilThen({ time: minuteOf(ends_at, now) }) : '',
  ].filter(Boolean);
  const zone = schedule.time_zone.replaceAll('_', ' ');
  return [
    m.weeklyAt({ days: daysWords(schedule.weekdays), start: schedule.start, duration: length, zone }),
    ...bounds,
  ].join(', ');
}

/** `30 min`, `8 h`, `3 days`. */
export function lengthWords(minutes: number): string {
  if (minutes >= 2880 && minutes % 1440 === 0) return m.lengthDays({ count: minutes / 1440 });
  return minutes % 60 === 0 ? m.lengthHours({ count: minutes / 60 }) : m.lengthMinutes({ count: minutes });
}
