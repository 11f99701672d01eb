// A chart beside itself, a day or a week before. Pure.
import * as m from '#messages/charts';
import type { Line } from '../../../charts/lines';
import type { Table } from '../../../charts/series';
import { before } from '../../../charts/thin';
import { parts } from './names';

export type Comparison = 'day' | 'week';

const DAY = 86_400;
export const EARLIER: Record<Comparison, number> = { day: DAY, week: 7 * DAY };

/** Charts of more lines would not be readable with each of them twice. */
const MOST_LINES = 3;
/** What is compared, by the part of the name before the colon: of charts of few lines the first ones. */
const COMPARED: ReadonlySet<string> = new Set([
  'cpu_percent',
  'memory_used',
  'load_1',
  'network_in',
  'network_out',
  'disk_read',
  'disk_write',
  'process_count',
]);

export function comparisonOf(query: URLSearchParams): Comparison | null {
  const given = query.get('compare');
  return given === 'day' || given === 'week' ? given : null;
}

/** Which of the series that are shown are read again, of before. */
export function comparedOf(names: Iterable<string>, chosen: readonly string[]): string[] {
  return [...names].filter((name) => COMPARED.has(parts(name)[0]) || chosen.includes(parts(name)[0]));
}

/** The lines of a chart with how each was before, where that is known. */
export function withBefore(lines: Line[], times: number[], past: Table, comparison: Comparison): Line[] {
  if (lines.length > MOST_LINES || past.times.length === 0) return lines;
  const label = comparison === 'day' ? m.dayBefore : m.weekBefore;
  const within = Math.max(past.resolution, 5) * 1.5;
  return lines.flatMap((line): Line[] => {
    const column = past.columns.get(line.name);
    if (!column) return [line];
    return [
      line,
      {
        name: `${line.name} ${comparison}`,
        label: label({ label: line.label }),
        colour: line.colour,
        column: before({ times: past.times, column }, times, EARLIER[comparison], within),
        isFaint: true,
      },
    ];
  });
}
