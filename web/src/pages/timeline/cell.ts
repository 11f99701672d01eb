// The time of a cell of the map in words. Pure.
import * as m from '#messages/timeline';
import type { Span } from '../../charts/ranges';
import { minuteOf, shortly } from '../../lib/times';

/** `07:50 to 08:00`, with the day unless it is today's. `now` in milliseconds. */
export function cellText({ from, to }: Span, now: number): string {
  // A cell is whole minutes long, and may end on another day.
  return m.span({ from: minuteOf(from * 1000, now), to: shortly(to * 1000, from * 1000, 'minute', 'weekdayMinute') });
}
