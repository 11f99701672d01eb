// What a chart says in words and numbers: in its legend, and to who cannot see it.
import * as m from '#messages/charts';
import { firstFrom, nearest } from './gaps';
import type { Line } from './lines';
import type { Span } from './ranges';
import { newest, summaryOf, type Value } from './series';
import { valueText, type Unit } from './units';

export interface Shown {
  value: Value;
  /** The least and the greatest, where the value is a mean. */
  edge: { least: number; most: number } | null;
}

/** More lines than that nobody listens to. */
const MOST_SAID = 8;

/** The values at a time, or the newest. */
export function shownAt(lines: Line[], times: number[], at: number | null, within: number): Shown[] {
  if (at === null) return lines.map((line) => ({ value: newest(line.column), edge: null }));
  const place = nearest(times, at, within);
  if (place === null) return lines.map(() => ({ value: null, edge: null }));
  return lines.map(({ column, hasBand }) => {
    const least = column.min[place] ?? null;
    const most = column.max[place] ?? null;
    const isMean = hasBand && least !== null && most !== null && least !== most;
    return { value: column.avg[place] ?? null, edge: isMean ? { least, most } : null };
  });
}

export function saidOf(lines: Line[], shown: Shown[], unit: Unit): string {
  const each = lines.slice(0, MOST_SAID).map((line, place) => `${line.label} ${valueText(shown[place]?.value, unit)}`);
  return each.join(', ');
}

/** Now, least and greatest of each line within a span. */
export function summaries(lines: Line[], times: number[], span: Span, unit: Unit): string {
  const from = firstFrom(times, span.from);
  const until = firstFrom(times, span.to + 1);
  const each = lines.slice(0, MOST_SAID).map((line) => {
    const { now, min, max } = summaryOf(line.column, from, until);
    return m.summary({
      label: line.label,
      last: valueText(now, unit),
      lowest: valueText(min, unit),
      highest: valueText(max, unit),
    });
  });
  return each.join(' ');
}
