// Which charts there are, and which lines each has. Pure: from a table to lines.
import * as m from '#messages/overview';
import type { Snapshot } from '../../../api/types';
import type { Line, Limit } from '../../../charts/lines';
import { seriesColour } from '../../../charts/colours';
import { labelOf } from '../../../charts/metrics';
import { newest, type Column, type Table } from '../../../charts/series';
import type { Unit } from '../../../charts/units';
import { bytes } from '../../../lib/format';
import { parts } from './names';

export interface ChartOf {
  key: string;
  title: string;
  unit: Unit;
  lines: Line[];
  limits: Limit[];
  top: number | null;
  /** What can be chosen between, where there is one of each: interfaces, devices. */
  choices: string[];
  chosen: string | null;
  /** How many lines there would be without a bound. */
  leftOut: number;
}

export interface Choices {
  /** CPU core by core. */
  cores: boolean;
  interface: string | null;
  device: string | null;
}

/** How many lines a chart has at most: more cannot be told apart. */
const MOST_LINES = 6;

/** The line of a series. Its label is the metric's, where none is given. */
function line(table: Table, name: string, place: number, more: Partial<Line> = {}): Line[] {
  const column = table.columns.get(name);
  const label = labelOf(parts(name)[0]) ?? name;
  return column ? [{ name, label, colour: seriesColour(place), column, ...more }] : [];
}

/** Lines without values, where others have some: the chart is hatched like its neighbours. */
function unmeasured(table: Table, bases: readonly string[]): Line[] {
  if (table.columns.size === 0) return [];
  const nothing = table.times.map(() => null);
  const column = { avg: nothing, min: nothing, max: nothing };
  return bases.map((base, place) => ({
    name: base,
    label: labelOf(base) ?? base,
    colour: seriesColour(place),
    column,
  }));
}

/** Everything that a kind is of: `of(table, 'network_in')` → `['eth0', 'lo']`. */
export function allOf(table: Table, base: string): string[] {
  const found: string[] = [];
  for (const name of table.columns.keys()) {
    const [own, of] = parts(name);
    if (own === base) found.push(of);
  }
  return found.sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
}

function total(column: Column | undefined): number {
  return column?.avg.reduce<number>((sum, value) => sum + (value ?? 0), 0) ?? 0;
}

/** The one with the most to show: what somebody wants to see first. */
export function busiest(table: Table, all: string[], bases: string[]): string | null {
  let best: string | null = null;
  let most = -1;
  for (const of of all) {
    const sum = bases.reduce((found, base) => found + total(table.columns.get(`${base}:${of}`)), 0);
    if (sum > most) [best, most] = [of, sum];
  }
  return best;
}

/** One line for each, the greatest first, at most as many as a chart has. */
function each(table: Table, base: string, more: Partial<Line> = {}): { lines: Line[]; leftOut: number } {
  const all = allOf(table, base);
  const weigh = (of: string) => {
    const column = table.columns.get(`${base}:${of}`);
    return column ? (newest(column) ?? -1) : -1;
  };
  const shown = all.length > MOST_LINES ? [...all].sort((a, b) => weigh(b) - weigh(a)).slice(0, MOST_LINES) : all;
  // In the order of their names, so that they keep their colours.
  const lines = all
    .filter((of) => shown.includes(of))
    .flatMap((of, place) => line(table, `${base}:${of}`, place, { label: of, hasBand: true, ...more }));
  return { lines, leftOut: all.length - lines.length };
}

const PLAIN = { limits: [], top: null, choices: [], chosen: null, leftOut: 0 };

function cpu(table: Table, cores: boolean): ChartOf {
  const base = { ...PLAIN, key: 'cpu', title: m.cpu(), unit: 'percent' as const, top: 100 };
  if (cores) {
    const lines = allOf(table, 'cpu_core').flatMap((core, place) =>
      line(table, `cpu_core:${core}`, place, { label: m.core({ name: core }) }),
    );
    if (lines.length > 0) return { ...base, lines };
  }
  return { ...base, lines: line(table, 'cpu_percent', 0, { hasBand: true, isFilled: true }) };
}

function memory(table: Table, latest: Snapshot | null): ChartOf {
  const size = latest?.memory_total ?? null;
  const hasSwap = (latest?.swap_total ?? 0) > 0;
  return {
    ...PLAIN,
    key: 'memory',
    title: m.memory(),
    unit: 'bytes',
    top: size,
    limits: size === null ? [] : [{ value: size, label: m.total({ size: bytes(size) }), tone: 'idle' }],
    lines: [
      ...line(table, 'memory_used', 0, { hasBand: true, isFilled: true }),
      ...(hasSwap ? line(table, 'swap_used', 1) : []),
    ],
  };
}

function load(table: Table, cores: number | null): ChartOf {
  return {
    ...PLAIN,
    key: 'load',
    title: m.load(),
    unit: 'count',
    limits: cores === null ? [] : [{ value: cores, label: m.cores({ count: cores }), tone: 'idle' }],
    lines: [...line(table, 'load_1', 0, { hasBand: true }), ...line(table, 'load_5', 1), ...line(table, 'load_15', 2)],
  };
}

function pair(
  table: Table,
  of: { key: string; title: string; bases: [string, string] },
  wanted: string | null,
): ChartOf {
  const [first, second] = of.bases;
  const choices = [...new Set([...allOf(table, first), ...allOf(table, second)])].sort();
  const chosen = wanted !== null && choices.includes(wanted) ? wanted : busiest(table, choices, of.bases);
  const lines =
    chosen === null
      ? unmeasured(table, of.bases)
      : [
          ...line(table, `${first}:${chosen}`, 0, { hasBand: true }),
          ...line(table, `${second}:${chosen}`, 1, { hasBand: true }),
        ];
  return { ...PLAIN, key: of.key, title: of.title, unit: 'bytes_per_second', lines, choices, chosen };
}

/** The charts of a server. Those of what it does not have are left out: a virtual machine has no sensors. */
export function chartsOf(table: Table, chosen: Choices, latest: Snapshot | null, cores: number | null): ChartOf[] {
  const network = {
    key: 'network',
    title: m.network(),
    bases: ['network_in', 'network_out'],
  } as const;
  const disk = {
    key: 'disk-io',
    title: m.diskIo(),
    bases: ['disk_read', 'disk_write'],
  } as const;
  const always: ChartOf[] = [
    cpu(table, chosen.cores),
    memory(table, latest),
    load(table, cores),
    pair(table, { ...network, bases: [...network.bases] }, chosen.interface),
    { ...PLAIN, key: 'disks', title: m.diskUsage(), unit: 'percent', top: 100, ...each(table, 'disk_percent') },
    pair(table, { ...disk, bases: [...disk.bases] }, chosen.device),
  ];
  const where: ChartOf[] = [
    { ...PLAIN, key: 'temperatures', title: m.temperatures(), unit: 'celsius', ...each(table, 'temperature') },
    {
      ...PLAIN,
      key: 'container-cpu',
      title: m.containerCpu(),
      unit: 'percent',
      ...each(table, 'container_cpu'),
    },
    {
      ...PLAIN,
      key: 'container-memory',
      title: m.containerMemory(),
      unit: 'bytes',
      ...each(table, 'container_memory'),
    },
    {
      ...PLAIN,
      key: 'processes',
      title: m.processes(),
      unit: 'count',
      lines: line(table, 'process_count', 0, { hasBand: true }),
    },
  ];
  return [...always, ...where.filter((chart) => chart.lines.length > 0)];
}
