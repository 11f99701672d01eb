// How times are written on axes and at the cursor: with as much as the distance of the lines needs.
import * as m from '#messages/charts';
import { wholeDuration } from '../lib/format';
import { isMidnight, shortly, written } from '../lib/times';

const HOUR = 3_600;
const DAY = 86_400;

/** Distances of the lines of the time axis, in seconds. Multiples of 30 days are months for uPlot. */
export const TIME_STEPS = [
  1,
  5,
  10,
  15,
  30,
  60,
  2 * 60,
  5 * 60,
  10 * 60,
  15 * 60,
  30 * 60,
  HOUR,
  2 * HOUR,
  3 * HOUR,
  6 * HOUR,
  12 * HOUR,
  DAY,
  2 * DAY,
  3 * DAY,
  7 * DAY,
  14 * DAY,
  30 * DAY,
  60 * DAY,
  90 * DAY,
  180 * DAY,
];

/** What stands at the lines of a time axis that are `step` seconds apart. Where a day begins, the day. */
export function timeLabels(times: number[], step: number): string[] {
  return times.map((time) => {
    const at = time * 1000;
    if (step >= 28 * DAY) return written('month', at);
    if (step >= DAY || isMidnight(at)) return written('day', at);
    return written(step < 60 ? 'second' : 'minute', at);
  });
}

/** A time at the cursor, with the day unless it is today's. */
export function cursorTime(time: number, now = Date.now()): string {
  return shortly(time * 1000, now, 'second', 'weekdaySecond');
}

/** How fine a chart is: `1 min average`, `5 s resolution`, and where it draws the greatest values `1 min peaks`. */
export function resolutionText(seconds: number, isMean: boolean, hasPeaks = false): string {
  const text = { duration: wholeDuration(seconds) };
  if (isMean && hasPeaks) return m.peaksOf(text);
  return isMean ? m.average(text) : m.resolution(text);
}
