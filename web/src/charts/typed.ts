// What people type for a range, understood: `yesterday 03:00 to 04:00`, `last monday`, `2 d`, `3h ago to now`, `gestern 3 bis 4
// Uhr`. Pure: the present, the zone and the order of dates are given.
import type { Range } from './ranges';
import {
  AGO,
  BEFORE_NOW,
  DAYS,
  FILLERS,
  FROM,
  HOURS,
  LAST,
  MONTHS,
  NOW,
  ONE,
  PARTS,
  SINCE,
  SIZES,
  THIS,
  TO,
  WEEKDAYS,
} from './vocabulary';
import type { Size } from './vocabulary';

export interface Reader {
  /** The present, in seconds since the epoch. */
  now: number;
  zone: 'local' | 'utc';
  /** Whether `3/4` is the 4th of March. */
  isMonthFirst: boolean;
}

export type Typed = { range: Range } | { fault: 'unknown' | 'future' | 'order' };

/** A day by the calendar. */
interface Day {
  year: number;
  month: number;
  day: number;
}

/** One end of a range, or a range by itself. `day` is one that a time alone may take over. */
interface Piece {
  from: number;
  to: number;
  day: Day | null;
  /** Seconds from midnight, where a time of the day was said without its day. */
  clock: { seconds: number; isWhole: boolean } | null;
}

const HOUR = 3_600;
const LENGTHS: Record<Size, number> = {
  second: 1,
  minute: 60,
  hour: HOUR,
  day: 24 * HOUR,
  week: 7 * 24 * HOUR,
  month: 30 * 24 * HOUR,
  year: 365 * 24 * HOUR,
};
/** Who names a minute wants to see what was around it. */
const AROUND = 15 * 60;
/** More is no range, and would only take long. */
const MAX_LENGTH = 120;
const LONGEST = 5 * LENGTHS.year;

/** A calendar of a zone. It knows days of 23 and 25 hours. */
class Calendar {
  readonly #isUtc: boolean;

  constructor(zone: Reader['zone']) {
    this.#isUtc = zone === 'utc';
  }

  /** The seconds of a time of a day, which may lie beyond it. */
  at({ year, month, day }: Day, seconds = 0): number {
    const hour = Math.floor(seconds / HOUR);
    const rest = seconds % HOUR;
    if (this.#isUtc) return Date.UTC(year, month - 1, day, hour, 0, rest) / 1000;
    return new Date(year, month - 1, day, hour, 0, rest).getTime() / 1000;
  }

  dayOf(at: number): Day {
    const date = new Date(at * 1000);
    if (this.#isUtc) return { year: date.getUTCFullYear(), month: date.getUTCMonth() + 1, day: date.getUTCDate() };
    return { year: date.getFullYear(), month: date.getMonth() + 1, day: date.getDate() };
  }

  /** So many days later. */
  moved({ year, month, day }: Day, by: number): Day {
    const date = new Date(Date.UTC(year, month - 1, day + by));
    return { year: date.getUTCFullYear(), month: date.getUTCMonth() + 1, day: date.getUTCDate() };
  }

  weekdayOf({ year, month, day }: Day): number {
    return new Date(Date.UTC(year, month - 1, day)).getUTCDay();
  }

  isDay({ year, month, day }: Day): boolean {
    const date = new Date(Date.UTC(year, month - 1, day));
    return date.getUTCMonth() === month - 1 && date.getUTCDate() === day && year > 1970 && year < 2200;
  }
}

/** What is typed as a range; what is not understood, lies ahead or ends before it begins is a fault. */
export function typed(text: string, reader: Reader): Typed {
  const tokens = tokensOf(text);
  if (tokens.length === 0) return { fault: 'unknown' };
  return new Parser(reader).range(tokens);
}

/** `yesterday 3pm - 16:30` as words, numbers, times and dates. */
function tokensOf(text: string): string[] {
  const spaced = text
    .slice(0, MAX_LENGTH)
    .trim()
    .toLowerCase()
    .replace(/\b([ap])\.\s?m\.?/g, '$1m')
    // A dash between spaces, or after a time, stands for "to"; one in a date does not.
    .replace(/\s+[-–—]\s+|[–—]|\.\.+|(?<=:\d\d|[ap]m)-(?=\d)/g, ' to ')
    .replace(/^-(?=\d)|(?<=\s)-(?=\d)/g, 'minus ')
    .replace(/\bnow-/g, 'minus ')
    .replace(/(\d)(st|nd|rd|th)\b/g, '$1.')
    .replace(/(\d{4}-\d\d?-\d\d?)t(?=\d)/g, '$1 ')
    .replace(/(\d+)([a-zäöü]+)/g, '$1 $2')
    .replace(/[,;()]/g, ' ');
  const tokens = spaced.split(/\s+/).filter((token) => token !== '' && !FILLERS.has(token));
  return tokens.filter((token, place) => token !== 'am' || /^\d[\d:.]*$/.test(tokens[place - 1] ?? ''));
}

class Parser {
  readonly #now: number;
  readonly #calendar: Calendar;
  readonly #today: Day;
  readonly #isMonthFirst: boolean;

  constructor({ now, zone, isMonthFirst }: Reader) {
    this.#now = now;
    this.#calendar = new Calendar(zone);
    this.#today = this.#calendar.dayOf(now);
    this.#isMonthFirst = isMonthFirst;
  }

  range(given: string[]): Typed {
    const [first = '', ...others] = given;
    const isSince = SINCE.has(first);
    const tokens = isSince || FROM.has(first) ? others : given;
    const divider = tokens.findIndex((token) => TO.has(token));
    if (divider >= 0) return this.#between(tokens.slice(0, divider), tokens.slice(divider + 1));
    const length = lengthOf(LAST.has(first) ? others : given);
    if (!isSince && length !== null && !this.#period(tokens)) return lived(length);
    const piece = this.#piece(tokens);
    if (!piece) return { fault: 'unknown' };
    if (isSince) return this.#checked(this.#settled(piece, null).from, this.#now);
    const { from, to } = this.#around(this.#settled(piece, null), tokens);
    return this.#checked(from, to);
  }

  #between(left: string[], right: string[]): Typed {
    const begin = this.#piece(left);
    const end = this.#piece(right);
    if (!begin || !end) return { fault: 'unknown' };
    // In "03:00 to 04:00 yesterday" the day stands at the end.
    const from = this.#settled(begin, end.day);
    const to = this.#settled(end, from.day ?? this.#calendar.dayOf(from.from));
    // The end of "monday to wednesday" is that of the day; of "3h ago to 1h ago" the time itself.
    const until = end.clock || isExact(right) ? to.from : to.to;
    if (!end.clock || end.day || until > from.from) return this.#checked(from.from, until);
    // "23:00 to 01:00" ends on the next day.
    const next = this.#calendar.moved(to.day ?? this.#today, 1);
    return this.#checked(from.from, this.#calendar.at(next, end.clock.seconds));
  }

  /** A time of the day alone is one of the day given, else the last that there was. */
  #settled(piece: Piece, day: Day | null): Piece {
    if (!piece.clock || piece.day) return piece;
    const { seconds } = piece.clock;
    const today = this.#calendar.at(this.#today, seconds);
    const own = day ?? (today <= this.#now ? this.#today : this.#calendar.moved(this.#today, -1));
    const from = this.#calendar.at(own, seconds);
    return { from, to: from + (piece.to - piece.from), day: own, clock: piece.clock };
  }

  /** A minute by itself is shown with what was around it, an hour as that hour. */
  #around(piece: Piece, tokens: string[]): { from: number; to: number } {
    if (piece.clock?.isWhole) return { from: piece.from, to: piece.from + HOUR };
    if (piece.clock || piece.from === piece.to) {
      const isNow = tokens.every((token) => NOW.has(token));
      return isNow
        ? { from: piece.from - AROUND, to: piece.from }
        : { from: piece.from - AROUND, to: piece.from + AROUND };
    }
    return piece;
  }

  #checked(from: number, to: number): Typed {
    if (!Number.isFinite(from) || !Number.isFinite(to)) return { fault: 'unknown' };
    if (from >= this.#now) return { fault: 'future' };
    const end = Math.min(to, Math.ceil(this.#now));
    if (end <= from) return { fault: 'order' };
    const begin = Math.floor(Math.max(from, end - LONGEST));
    return { range: { kind: 'fixed', from: begin, to: Math.max(begin + 1, Math.floor(end)) } };
  }

  #piece(given: string[]): Piece | null {
    // In "yesterday from 3 to 4" the word stands within.
    const tokens = given.filter((token) => !FROM.has(token));
    const instant = this.#instant(tokens);
    if (instant !== null) return { from: instant, to: instant, day: null, clock: null };
    return this.#period(tokens) ?? this.#dayAndTime(tokens);
  }

  /** `now`, `3 h ago`, `vor 3 Stunden`, `-3h`. */
  #instant(tokens: string[]): number | null {
    if (tokens.length === 1 && NOW.has(tokens[0] ?? '')) return this.#now;
    const [first = '', ...others] = tokens;
    const isAgo = AGO.has(tokens.at(-1) ?? '');
    if (!isAgo && !BEFORE_NOW.has(first) && first !== 'minus') return null;
    const length = lengthOf(isAgo ? tokens.slice(0, -1) : others);
    return length === null ? null : this.#now - length;
  }

  /** `last week`, `this month`, `letztes Jahr`. */
  #period(tokens: string[]): Piece | null {
    const [first = '', second = '', ...rest] = tokens;
    const by = LAST.has(first) ? -1 : THIS.has(first) ? 0 : null;
    const size = SIZES.get(second);
    if (by === null || size === undefined || rest.length > 0) return null;
    const { year, month } = this.#today;
    const days = (begin: Day, end: Day): Piece => ({
      from: this.#calendar.at(begin),
      to: this.#calendar.at(end),
      day: begin,
      clock: null,
    });
    // Weeks begin on Monday.
    const monday = this.#calendar.moved(this.#today, -((this.#calendar.weekdayOf(this.#today) + 6) % 7) + by * 7);
    if (size === 'week') return days(monday, this.#calendar.moved(monday, 7));
    if (size === 'year') return days({ year: year + by, month: 1, day: 1 }, { year: year + by + 1, month: 1, day: 1 });
    if (size === 'month')
      return days(
        this.#calendar.moved({ year, month: month + by, day: 1 }, 0),
        this.#calendar.moved({ year, month: month + by + 1, day: 1 }, 0),
      );
    return null;
  }

  #wholeDay(day: Day): Piece {
    return { from: this.#calendar.at(day), to: this.#calendar.at(this.#calendar.moved(day, 1)), day, clock: null };
  }

  /** A day, a time, or both, in any order. */
  #dayAndTime(tokens: string[]): Piece | null {
    let rest = tokens;
    const day = this.#day(rest);
    if (day) rest = day.rest;
    // What is left of `last night` and `gestern Abend`.
    const part = rest.length === 1 ? PARTS.get(rest[0] ?? '') : undefined;
    if (part) return this.#partOf(day?.day ?? null, part);
    if (rest.length === 2 && LAST.has(rest[0] ?? '') && PARTS.has(rest[1] ?? ''))
      return this.#partOf(this.#calendar.moved(this.#today, -1), PARTS.get(rest[1] ?? '') ?? { from: 0, to: 24 });
    if (rest.length === 0) return day ? this.#wholeDay(day.day) : null;
    const clock = clockOf(rest);
    if (!clock) return null;
    const from = this.#calendar.at(day?.day ?? this.#today, clock.seconds);
    return { from, to: from, day: day?.day ?? null, clock };
  }

  #partOf(given: Day | null, { from, to }: { from: number; to: number }): Piece {
    const begins = this.#calendar.at(this.#today, from * HOUR);
    const day = given ?? (begins <= this.#now ? this.#today : this.#calendar.moved(this.#today, -1));
    return { from: this.#calendar.at(day, from * HOUR), to: this.#calendar.at(day, to * HOUR), day, clock: null };
  }

  /** Finds a day and says what else was typed. */
  #day(tokens: string[]): { day: Day; rest: string[] } | null {
    const without = (place: number, count: number) =>
      tokens.filter((_, index) => index < place || index >= place + count);
    for (const [place, token] of tokens.entries()) {
      const next = tokens[place + 1] ?? '';
      const offset = DAYS.get(token);
      if (offset !== undefined) {
        const isBefore = tokens[place - 2] === 'day' && tokens[place - 1] === 'before';
        const day = this.#calendar.moved(this.#today, offset - (isBefore ? 1 : 0));
        return { day, rest: isBefore ? without(place - 2, 3) : without(place, 1) };
      }
      const weekday = WEEKDAYS.get(token.replace(/\.$/, ''));
      if (weekday !== undefined) return this.#weekday(tokens, place, weekday);
      const dated = this.#date(token);
      if (dated) return { day: dated, rest: without(place, 1) };
      const named = this.#named(token, next, tokens[place + 2] ?? '');
      if (named) return { day: named.day, rest: without(place, named.count) };
    }
    return null;
  }

  /** The last one that there was; `last monday` is not today. */
  #weekday(tokens: string[], place: number, weekday: number): { day: Day; rest: string[] } {
    const isLast = LAST.has(tokens[place - 1] ?? '');
    const hasWord = isLast || THIS.has(tokens[place - 1] ?? '');
    const back = (this.#calendar.weekdayOf(this.#today) - weekday + 7) % 7;
    const day = this.#calendar.moved(this.#today, -(back === 0 && isLast ? 7 : back));
    return { day, rest: tokens.filter((_, index) => index !== place && !(hasWord && index === place - 1)) };
  }

  /** `2026-11-23`, `23.11.`, `23.11.2026`, `11/23`. */
  #date(token: string): Day | null {
    const iso = /^(\d{4})-(\d{1,2})-(\d{1,2})$/.exec(token);
    if (iso) return this.#valid({ year: Number(iso[1]), month: Number(iso[2]), day: Number(iso[3]) });
    const dotted = /^(\d{1,2})\.(\d{1,2})\.(\d{2}|\d{4})?$/.exec(token);
    if (dotted) return this.#past(Number(dotted[1]), Number(dotted[2]), dotted[3]);
    const slashed = /^(\d{1,2})\/(\d{1,2})(?:\/(\d{2}|\d{4}))?$/.exec(token);
    if (!slashed) return null;
    const [one, other] = [Number(slashed[1]), Number(slashed[2])];
    return this.#isMonthFirst ? this.#past(other, one, slashed[3]) : this.#past(one, other, slashed[3]);
  }

  /** `23. november 2026`, `nov 23`. */
  #named(token: string, next: string, third: string): { day: Day; count: number } | null {
    const number = (text: string) => (/^\d{1,2}\.?$/.test(text) ? Number(text.replace('.', '')) : null);
    const month = (text: string) => MONTHS.get(text.replace(/\.$/, '')) ?? null;
    const isFirst = month(token) !== null;
    const ofMonth = isFirst ? month(token) : month(next);
    const ofDay = isFirst ? number(next) : number(token);
    if (ofMonth === null || ofDay === null) return null;
    const year = /^\d{4}$/.test(third) ? third : undefined;
    const day = this.#past(ofDay, ofMonth, year);
    return day ? { day, count: year ? 3 : 2 } : null;
  }

  /** A date without a year is the last that there was. */
  #past(day: number, month: number, year: string | undefined): Day | null {
    if (year) return this.#valid({ year: Number(year.length === 2 ? `20${year}` : year), month, day });
    const own = { year: this.#today.year, month, day };
    return this.#valid(this.#calendar.at(own) > this.#now ? { ...own, year: own.year - 1 } : own);
  }

  #valid(day: Day): Day | null {
    return this.#calendar.isDay(day) ? day : null;
  }
}

/** Whether an end was given as a moment: `now`, `1 h ago`. */
function isExact(tokens: string[]): boolean {
  return tokens.some((token) => NOW.has(token) || AGO.has(token) || BEFORE_NOW.has(token) || token === 'minus');
}

/** `2 d`, `1 h 30 min`, `eine Stunde`, `week`: its seconds. */
function lengthOf(tokens: string[]): number | null {
  const [first = ''] = tokens;
  if (tokens.length === 1) {
    const size = SIZES.get(first);
    return size === undefined || first.length < 3 ? null : LENGTHS[size];
  }
  let sum = 0;
  for (let place = 0; place < tokens.length; place += 2) {
    const count = ONE.has(tokens[place] ?? '') ? 1 : Number((tokens[place] ?? '').replace(',', '.'));
    const size = SIZES.get(tokens[place + 1] ?? '');
    if (!Number.isFinite(count) || count <= 0 || size === undefined) return null;
    sum += count * LENGTHS[size];
  }
  return sum > 0 ? sum : null;
}

function lived(seconds: number): Typed {
  return { range: { kind: 'live', seconds: Math.min(LONGEST, Math.max(10, Math.round(seconds))) } };
}

/** `03:00`, `3:00:30`, `3 pm`, `15`, `noon`: its seconds from midnight. */
function clockOf(tokens: string[]): { seconds: number; isWhole: boolean } | null {
  const [first = '', second = '', ...rest] = tokens;
  if (rest.length > 0) return null;
  const word = HOURS.get(first);
  if (word !== undefined) return second === '' ? { seconds: word * HOUR, isWhole: false } : null;
  const found = /^(\d{1,2})(?:[:.](\d{2})(?::(\d{2}))?)?$/.exec(first);
  if (!found || !['', 'am', 'pm', 'h'].includes(second)) return null;
  const [hour, minute, seconds] = [Number(found[1]), Number(found[2] ?? 0), Number(found[3] ?? 0)];
  const isHalf = second === 'am' || second === 'pm';
  if (minute > 59 || seconds > 59 || hour > (isHalf ? 12 : 24) || (isHalf && hour === 0)) return null;
  const own = isHalf ? (hour % 12) + (second === 'pm' ? 12 : 0) : hour;
  return { seconds: own * HOUR + minute * 60 + seconds, isWhole: found[2] === undefined };
}
