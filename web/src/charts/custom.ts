import * as m from '#messages/overview';
import type { Reader } from './typed';
import { fromLocal, toLocalSecond } from '../lib/localtime';
import { locale } from '../text/catalogue';
import { preferences } from '../text/preferences.svelte';

/** What a field has of a time. */
export function fieldOf(seconds: number): string {
  return toLocalSecond(seconds * 1000);
}

export interface Faults {
  from: string | null;
  to: string | null;
}

/** What is wrong with two times that were typed. */
export function faultsOf(from: string, to: string, now: number): Faults {
  const [begin, end] = [secondsOf(from), secondsOf(to)];
  return {
    from: begin === null ? m.giveTime() : begin >= now ? m.future() : null,
    to: end === null ? m.giveTime() : begin !== null && end <= begin ? m.order() : null,
  };
}

export function secondsOf(field: string): number | null {
  const moment = fromLocal(field);
  return moment === null ? null : Date.parse(moment) / 1000;
}

/** How the reader's words for times are meant: by the clock and the order of dates that they see. */
export function readerOf(now: number): Reader {
  const parts = new Intl.DateTimeFormat(locale()).formatToParts(now * 1000).map((part) => part.type);
  return {
    now,
    zone: preferences.zone,
    isMonthFirst: parts.indexOf('month') < parts.indexOf('day') && !isYearFirst(parts),
  };
}

function isYearFirst(parts: string[]): boolean {
  return parts.indexOf('year') < parts.indexOf('month');
}
