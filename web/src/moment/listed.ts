// What happened as a list shows it: the same several times in a row once, and where another day begins. Pure.
import { partsOf } from '../lib/times';
import type { Happening } from './happened';

export interface Listed extends Happening {
  /** How often it happened in a row; `at` is the first time. */
  count: number;
  /** Seconds: the last time. */
  until: number;
  /** It is the first of a day that has to be named. */
  opensDay: boolean;
}

const dayOf = (seconds: number) =>
  partsOf(seconds * 1000)
    .slice(0, 3)
    .join('-');

/** Two that differ in their time alone. */
const isSame = (one: Happening, other: Happening) =>
  (['title', 'by', 'code', 'href', 'eventId', 'tone', 'serverId'] as const).every((key) => one[key] === other[key]) &&
  dayOf(one.at) === dayOf(other.at);

/** `all` with the oldest first. Days are named unless all of it is of today; `now` in seconds. */
export function listed(all: readonly Happening[], now: number): Listed[] {
  const rows: Listed[] = [];
  for (const one of all) {
    const last = rows.at(-1);
    if (last && isSame(last, one)) Object.assign(last, { count: last.count + 1, until: one.at });
    else
      rows.push({ ...one, count: 1, until: one.at, opensDay: last === undefined || dayOf(last.at) !== dayOf(one.at) });
  }
  const isToday = rows.every(({ at }) => dayOf(at) === dayOf(now));
  return isToday ? rows.map((row) => ({ ...row, opensDay: false })) : rows;
}
