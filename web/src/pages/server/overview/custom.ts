import * as m from '#messages/overview';
import { fromLocal, toLocalSecond } from '../../../lib/localtime';

/** What `datetime-local` shows of a time. */
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
