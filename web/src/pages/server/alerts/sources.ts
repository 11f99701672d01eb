// Where the numbers of a metric come from: which series of the history it reads, and what a server has of it.
import type { Metric, Snapshot } from '../../../api/types';
import { WATCHED } from '../../../charts/metrics';
import type { Column } from '../../../charts/series';
import type { Unit } from '../../../charts/units';
import { parts } from '../overview/names';

interface Source {
  /** The first part of the names of its series. */
  base: string;
  unit: Unit;
}

/** The machine's talk with itself counts only where it is named. */
const LOOPBACK = 'lo';

/** None for what has no numbers over time, and for open series, whose unit only their names tell. */
export function sourceOf(metric: Metric): Source | null {
  return WATCHED.find((watched) => watched.word === metric) ?? null;
}

/** Which of the names a metric reads: of the target, or of all. */
export function namesOf(names: Iterable<string>, metric: Metric, target: string): string[] {
  const source = sourceOf(metric);
  if (!source) return [];
  return [...names]
    .filter((name) => {
      const [base, of] = parts(name);
      if (base !== source.base) return false;
      if (target) return of === target || (metric === 'temperature' && isNumbered(of, target));
      return of !== LOOPBACK || !metric.startsWith('network');
    })
    .sort((one, other) => one.localeCompare(other, undefined, { numeric: true }));
}

/** The history numbers sensors that have the same label. */
function isNumbered(of: string, label: string): boolean {
  return of.startsWith(`${label}#`) && /^\d+$/.test(of.slice(label.length + 1));
}

/** By what a series is multiplied to be the metric; null where the server has no such thing. Swap is kept in bytes. */
export function scaleOf(metric: Metric, latest: Snapshot | null): number | null {
  if (metric !== 'swap') return 1;
  return latest && latest.swap_total > 0 ? 100 / latest.swap_total : null;
}

export function scaled(column: Column, scale: number): Column {
  if (scale === 1) return column;
  const by = (values: Column['avg']) => values.map((value) => (value === null ? null : value * scale));
  return { avg: by(column.avg), min: by(column.min), max: by(column.max) };
}

function openNames(latest: Snapshot | null): [base: string, of: string][] {
  return Object.keys(latest?.extra ?? {}).map(parts);
}

/** The open series that the server has, without their targets. */
export function seriesOf(latest: Snapshot | null): string[] {
  return [...new Set(openNames(latest).map(([base]) => base))].sort();
}

/** What a threshold may name: the disks, interfaces, sensors or containers that the server has. */
export function targetsOf(
  metric: Metric,
  latest: Snapshot | null,
  containers: readonly string[],
  series = '',
): string[] {
  const all: Partial<Record<Metric, readonly string[]>> = {
    disk: latest?.disk_usage.map((disk) => disk.path) ?? [],
    network_in: latest?.network.map((one) => one.interface) ?? [],
    network_out: latest?.network.map((one) => one.interface) ?? [],
    temperature: latest?.temperatures.map((sensor) => sensor.label) ?? [],
    container_state: containers,
    reboot: [],
    series: openNames(latest).flatMap(([base, of]) => (base === series && of ? [of] : [])),
  };
  return [...new Set(all[metric] ?? [])].sort((one, other) => one.localeCompare(other, undefined, { numeric: true }));
}
