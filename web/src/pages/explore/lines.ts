// The lines of the service's answer as charts draw them, and what a table says of each. Pure.
import * as m from '#messages/explore';
import { seriesColour, SERIES } from '../../charts/colours';
import type { Line } from '../../charts/lines';
import type { Value } from '../../charts/series';
import type { Unit } from '../../charts/units';
import type { GroupBy } from './query';
import type { CombinedAnswer, CombinedLine } from './types';

/** What a table says of a line. */
export interface Row {
  name: string;
  label: string;
  colour: string;
  isDashed: boolean;
  /** Where a click leads: the server that it is of. */
  serverId: string | null;
  unit: Unit;
  min: Value;
  mean: Value;
  max: Value;
  last: Value;
  /** The most servers that a point is of. */
  servers: number;
}

/** One chart: lines of one unit. */
export interface UnitChart {
  unit: Unit;
  lines: Line[];
  /** The series that it is of. */
  names: string[];
}

export interface Drawn {
  times: number[];
  /** Points stand for several values: for their average, or for the greatest. */
  isMean: boolean;
  charts: UnitChart[];
  rows: Row[];
}

export const NOTHING: Drawn = { times: [], isMean: false, charts: [], rows: [] };

/** `network_in:eth0` → `['network_in', 'eth0']`. */
export function parts(name: string): [base: string, of: string] {
  const at = name.indexOf(':');
  return at < 0 ? [name, ''] : [name.slice(0, at), name.slice(at + 1)];
}

/** A series for people: `disk_read: sda`. */
export function seriesLabel(name: string): string {
  const [base, of] = parts(name);
  if (!of) return base;
  return of === '*' ? m.every({ name: base }) : `${base}: ${of}`;
}

function groupLabel(line: CombinedLine, by: GroupBy): string {
  if (by === 'server') return line.server_name ?? m.gone();
  if (by === 'tag') return line.tag ?? m.noTag();
  if (by === 'series') {
    const [base, of] = parts(line.series ?? line.name);
    return `${line.server_name ?? m.gone()}: ${of || base}`;
  }
  return seriesLabel(line.name);
}

/** What tells a line from all others of an answer. */
export const nameOf = (line: CombinedLine) => [line.name, line.series, line.server_id, line.tag].join('\n');

/**
 * The lines of an answer in the places that they had in the one before. New ones take the places of those that have left, so that
 * the others move only where more have left than have come.
 */
export function inPlaces(before: readonly CombinedLine[], lines: readonly CombinedLine[]): CombinedLine[] {
  const byName = new Map(lines.map((line) => [nameOf(line), line]));
  const known = new Set(before.map(nameOf));
  const newcomers = lines.filter((line) => !known.has(nameOf(line)));
  const placed = before.map((old) => byName.get(nameOf(old)) ?? newcomers.shift());
  return [...placed.filter((line) => line !== undefined), ...newcomers];
}

/** The charts and the table of an answer. `unitOf` says in what a series is measured. */
export function drawn(answer: CombinedAnswer, by: GroupBy, unitOf: (name: string) => Unit): Drawn {
  const isAlone = answer.lines.length === 1;
  const isBanded = bandedOf(answer.lines, unitOf);
  const names = [...new Set(answer.lines.map((line) => line.name))];
  const hasMany = names.length > 1;
  const charts = new Map<Unit, Line[]>();
  const rows: Row[] = [];
  for (const line of answer.lines) {
    const unit = unitOf(line.name);
    const lines = charts.get(unit) ?? [];
    charts.set(unit, lines);
    const group = groupLabel(line, by);
    const label = hasMany && by !== 'none' && by !== 'series' ? `${group}: ${parts(line.name)[0]}` : group;
    const name = nameOf(line);
    const colour = seriesColour(lines.length);
    // The seventh line has the colour of the first, so it is dashed.
    const isDashed = Math.floor(lines.length / SERIES.length) % 2 === 1;
    const column = { avg: line.avg as Value[], min: line.min as Value[], max: line.max as Value[] };
    lines.push({ name, label, colour, column, hasBand: isBanded.has(unit), isFilled: isAlone, isDashed });
    rows.push({ name, label, colour, isDashed, serverId: line.server_id ?? null, unit, ...statistics(line) });
  }
  const namesOf = (unit: Unit) => names.filter((name) => unitOf(name) === unit);
  const drawnCharts = [...charts].map(([unit, lines]) => ({ unit, lines, names: namesOf(unit) }));
  return { times: answer.timestamps, isMean: answer.lines.some(isMean), charts: drawnCharts, rows };
}

/** The bands of more lines would hide one another. */
const MOST_BANDS = 3;

/** The units whose charts have so few lines that the band of each can be seen. */
function bandedOf(lines: readonly CombinedLine[], unitOf: (name: string) => Unit): ReadonlySet<Unit> {
  const units = lines.map((line) => unitOf(line.name));
  return new Set(units.filter((unit) => units.filter((other) => other === unit).length <= MOST_BANDS));
}

/** Whether the least and the greatest of a point differ. */
const isMean = ({ min, max }: CombinedLine) => max.some((most, place) => most !== null && most !== min[place]);

type Statistics = Pick<Row, 'min' | 'mean' | 'max' | 'last' | 'servers'>;

function statistics(line: CombinedLine): Statistics {
  const found: Statistics = { min: null, mean: null, max: null, last: null, servers: 0 };
  let sum = 0;
  let count = 0;
  for (const [place, mean] of line.avg.entries()) {
    if (mean == null) continue;
    const [least, most] = [line.min[place] ?? mean, line.max[place] ?? mean];
    found.min = Math.min(found.min ?? least, least);
    found.max = Math.max(found.max ?? most, most);
    found.last = mean;
    found.servers = Math.max(found.servers, line.servers[place] ?? 0);
    sum += mean;
    count += 1;
  }
  if (count > 0) found.mean = sum / count;
  return found;
}

/** A row whose line is not drawn any more. Another line may have its colour. */
export const withoutValues = (row: Row): Row => ({
  ...row,
  colour: '--border',
  min: null,
  mean: null,
  max: null,
  last: null,
  servers: 0,
});

export const COLUMNS = ['min', 'mean', 'max', 'last'] as const;
export type SortKey = 'label' | (typeof COLUMNS)[number];

/** Rows in an order; what has no value comes last. */
export function sorted(rows: readonly Row[], key: SortKey, isDescending: boolean): Row[] {
  const sign = isDescending ? -1 : 1;
  return [...rows].sort((one, other) => {
    if (key === 'label') return sign * one.label.localeCompare(other.label, undefined, { numeric: true });
    const [a, b] = [one[key], other[key]];
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    return sign * (a - b);
  });
}
