// Times as a field has them: typed and shown as `2026-11-21 03:00`, by the clock that the reader chose. What is kept of it is
// `2026-11-21T03:00:00`, without a zone.

/** What cannot be read is no time; what can be read may still be on no calendar, or be left out when clocks change. */
export type ReadTime = { local: string } | { fault: 'form' | 'missing' };

export type Cycle = 'h12' | 'h23';

const DAY = /^(\d{4})-(\d{1,2})-(\d{1,2})/;
const CLOCK = /^(\d{1,2}):(\d{2})(?::(\d{2}))?\s*(?:([ap])\.?m\.?)?$/i;

const two = (part: number) => String(part).padStart(2, '0');

function hourOf(hour: number, half: string | undefined): number | null {
  if (!half) return hour <= 23 ? hour : null;
  if (hour < 1 || hour > 12) return null;
  return (hour % 12) + (half.toLowerCase() === 'p' ? 12 : 0);
}

/** A day alone: `2026-11-21`. */
export function readDay(text: string): ReadTime {
  const [day, year, month, date] = DAY.exec(text.trim()) ?? [];
  if (day === undefined || day !== text.trim()) return { fault: 'form' };
  const local = `${year}-${two(Number(month))}-${two(Number(date))}`;
  const at = new Date(`${local}T00:00:00Z`);
  return !Number.isNaN(at.getTime()) && at.toISOString().startsWith(local) ? { local } : { fault: 'missing' };
}

/** The time of a day: `22:00` for `22:00`, `10:00 PM`, `10:00pm`. */
export function readClock(text: string): ReadTime {
  const [, hours, minutes, seconds = '0', half] = CLOCK.exec(text.trim()) ?? [];
  if (hours === undefined || minutes === undefined) return { fault: 'form' };
  const hour = hourOf(Number(hours), half);
  if (hour === null || Number(minutes) > 59 || Number(seconds) > 59) return { fault: 'missing' };
  return { local: `${two(hour)}:${minutes}${seconds === '0' || seconds === '00' ? '' : `:${seconds}`}` };
}

/** A day and a time. A day alone is its midnight. `exists` says whether the reader's clock shows that time at all. */
export function readMoment(text: string, exists: (local: string) => boolean): ReadTime {
  const [day, year, month, date] = DAY.exec(text.trim()) ?? [];
  if (day === undefined) return { fault: 'form' };
  const rest = text
    .trim()
    .slice(day.length)
    .replace(/^[T,]?\s*/i, '');
  const clock = rest === '' ? { local: '00:00' } : readClock(rest);
  if ('fault' in clock) return clock;
  const time = clock.local.length === 5 ? `${clock.local}:00` : clock.local;
  const local = `${year}-${two(Number(month))}-${two(Number(date))}T${time}`;
  return exists(local) ? { local } : { fault: 'missing' };
}

export function clockText(clock: string, cycle: Cycle): string {
  const [hour = '', minute = '', second = '00'] = clock.split(':');
  const tail = second === '00' ? '' : `:${second}`;
  if (cycle === 'h23' || hour === '') return `${hour}:${minute}${tail}`;
  const number = Number(hour);
  return `${two(number % 12 || 12)}:${minute}${tail} ${number < 12 ? 'AM' : 'PM'}`;
}

/** `2026-11-21 03:00`; with seconds where there are some. What is no time stays as it is. */
export function momentText(local: string, cycle: Cycle): string {
  const [day, clock] = local.split('T');
  return day && clock && /^\d{2}:\d{2}(:\d{2})?$/.test(clock) ? `${day} ${clockText(clock, cycle)}` : local;
}

type Part = 'year' | 'month' | 'day' | 'hour' | 'minute' | 'second';

/** The part of a text in which a place is. */
export function partAt(text: string, place: number): Part {
  const before = text.slice(0, place);
  if (!/[T\s]/.test(before) && /^\d+-/.test(text)) {
    const dashes = before.split('-').length - 1;
    return dashes === 0 ? 'year' : dashes === 1 ? 'month' : 'day';
  }
  const colons = before.split(':').length - 1;
  return colons === 0 ? 'hour' : colons === 1 ? 'minute' : 'second';
}

const LENGTHS: Record<Exclude<Part, 'year' | 'month'>, number> = {
  day: 86_400_000,
  hour: 3_600_000,
  minute: 60_000,
  second: 1_000,
};

/** A time in which one part is another by so many. */
export function moved(local: string, part: Part, by: number): string {
  const at = new Date(`${local}Z`);
  if (Number.isNaN(at.getTime())) return local;
  if (part === 'year' || part === 'month') {
    const day = at.getUTCDate();
    at.setUTCDate(1);
    at.setUTCMonth(at.getUTCMonth() + by * (part === 'year' ? 12 : 1));
    // The thirty-first of a shorter month is its last day.
    const last = new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1, 0)).getUTCDate();
    at.setUTCDate(Math.min(day, last));
  } else at.setTime(at.getTime() + by * LENGTHS[part]);
  return at.toISOString().slice(0, 19);
}
