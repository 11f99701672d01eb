// When a cron expression is due in a time zone: what the form shows before the service has it. Pure.
import { fitsDay, isFixed, type Cron } from './cron';

const MINUTE = 60_000;
const DAY = 86_400_000;
/** A leap day is due within eight years. */
const MOST_DAYS = 366 * 8 + 2;

/** Made once for a zone: to make one takes longer than to read a hundred clocks. */
const clocks = new Map<string, Intl.DateTimeFormat>();

function clockOf(zone: string): Intl.DateTimeFormat {
  let known = clocks.get(zone);
  if (!known) {
    known = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
    clocks.set(zone, known);
  }
  return known;
}

/** Whether it is a name of the IANA database, as the browser knows it. Offsets such as `+01:00` are none. */
export function isZone(zone: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9_+\-/]*$/.test(zone)) return false;
  try {
    clockOf(zone);
    return true;
  } catch {
    return false;
  }
}

/** What the clocks of a zone show, as if it was UTC. */
function shown(at: number, zone: string): number {
  const parts: Record<string, number> = {};
  for (const { type, value } of clockOf(zone).formatToParts(at)) parts[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

const offset = (at: number, zone: string) => shown(at, zone) - at;

/** When the clocks of a zone show a time: never, once or twice. And when they jump over it. */
function whenShown(local: number, zone: string): { at: number[]; jump: number | null } {
  const [before, after] = [offset(local - DAY, zone), offset(local + DAY, zone)];
  const at = [...new Set([local - before, local - after])]
    .filter((moment) => offset(moment, zone) === local - moment)
    .sort((a, b) => a - b);
  return { at, jump: at.length === 0 ? jumpBetween(local - DAY - before, local + DAY - after, before, zone) : null };
}

/** The first minute whose offset is another one. */
function jumpBetween(from: number, to: number, before: number, zone: string): number {
  let [last, first] = [from, to];
  while (first - last > MINUTE) {
    const middle = last + Math.floor((first - last) / 2 / MINUTE) * MINUTE;
    if (offset(middle, zone) === before) last = middle;
    else first = middle;
  }
  return first;
}

/** The next times after this one at which it is due, and before `until`. */
export function nextTimes(
  cron: Cron,
  zone: string,
  after: number,
  count: number,
  until: number | null = null,
): number[] {
  const found = new Set<number>();
  const isOnce = isFixed(cron);
  const today = Math.floor(shown(after, zone) / DAY) * DAY;
  for (let day = 0; day < MOST_DAYS && found.size < count; day += 1) {
    const midnight = today + day * DAY;
    const date = new Date(midnight);
    if (!fitsDay(cron, date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate())) continue;
    for (const moment of timesOf(cron, midnight, zone, isOnce)) {
      if (until !== null && moment >= until) return [...found].slice(0, count);
      if (moment > after) found.add(moment);
    }
  }
  return [...found].slice(0, count);
}

/** The times of a day, which begins at `midnight` by its clocks. */
function timesOf({ hours, minutes }: Cron, midnight: number, zone: string, isOnce: boolean): number[] {
  const times = hours.values.flatMap((hour) =>
    minutes.values.flatMap((minute) => {
      const { at, jump } = whenShown(midnight + (hour * 60 + minute) * MINUTE, zone);
      if (!isOnce) return at;
      return at.length > 0 ? at.slice(0, 1) : jump === null ? [] : [jump];
    }),
  );
  return times.sort((a, b) => a - b);
}
