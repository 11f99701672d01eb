// What a chart knows beside its values: when there were none, and where its newest points are. Pure.
import * as m from '#messages/charts';
import { minuteOf } from '../lib/times';
import { gapsWithin, LEAST_PACE, paceOf, type Gap } from './gaps';
import type { Line } from './lines';
import type { Span } from './ranges';
import { cursorTime } from './times';

/** A gap of a smaller part of a chart is the break of its line alone. */
const LEAST_SHARE = 100;
/** Of more lines the newest points would hide one another. */
const MOST_NEWEST = 3;
/** What is older is not the present. */
const NEWEST_SECONDS = 20;

/** The times within a span of which none of the lines has data. */
export function gapsOf(times: readonly number[], lines: readonly Line[], span: Span): Gap[] {
  const own = lines.filter((line) => !line.isFaint);
  if (own.length === 0) return [];
  const measured = times.filter((_, place) => own.some(({ column }) => column.avg[place] != null));
  const least = Math.max(LEAST_PACE, (span.to - span.from) / LEAST_SHARE);
  return gapsWithin(measured, span.from, span.to, paceOf(measured, least));
}

/** `No data 08:12 to 08:52`. `now` is in milliseconds. */
export function gapText(gap: Gap, span: Span, now: number): string {
  const isShort = gap.to - gap.from < 180;
  const written = (time: number) => (isShort ? cursorTime(time, now) : minuteOf(time * 1000, now));
  const isStart = gap.from <= span.from;
  const isEnd = gap.to >= span.to;
  if (isStart && isEnd) return m.noData();
  if (isStart) return m.noDataUntil({ to: written(gap.to) });
  return isEnd
    ? m.noDataSince({ from: written(gap.from) })
    : m.noDataBetween({ from: written(gap.from), to: written(gap.to) });
}

/** The newest point of each line, where there are few lines and it is the present. */
export function newestOf(times: readonly number[], lines: readonly Line[], span: Span) {
  const own = lines.filter((line) => !line.isFaint);
  if (own.length > MOST_NEWEST) return [];
  return own.flatMap(({ name, colour, column }) => {
    for (let place = times.length - 1; place >= Math.max(0, times.length - 4); place -= 1) {
      const [time, value] = [times[place], column.avg[place]];
      if (time === undefined || value == null) continue;
      const oldest = span.to - Math.max(NEWEST_SECONDS, (span.to - span.from) / LEAST_SHARE);
      return time >= oldest && time <= span.to ? [{ name, colour, time, value }] : [];
    }
    return [];
  });
}
