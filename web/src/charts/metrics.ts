// The typed metrics: `metrics.json` is made from the service's table. A new one is there as soon as it is in the table.
import * as m from '#messages/metrics';
import type { Snapshot } from '../api/types';
import listed from './metrics.json';
import type { Unit } from './units';

interface Metric {
  /** The name of its series before the colon; null of one that has none. */
  series: string | null;
  kind: 'gauge' | 'counter' | 'last';
  unit: Unit;
  /** What a line of it is called in a chart. */
  label: string;
  /** The list of a snapshot that has it; null where the machine has it once. */
  list: string | null;
  /** The key of the names of the list's entries; null of a list of numbers. */
  of: string | null;
  /** The key of its value, and the place in the array that is there. */
  key: string;
  place: number | null;
  threshold: ThresholdOf | null;
}

/** What thresholds on a metric are about. */
interface ThresholdOf {
  word: string;
  label: string;
  unit: Unit;
  /** The unit as the label of a field. */
  counts: string;
  /** The value that a new threshold begins with. */
  usual: number;
}

const ALL = listed as readonly Metric[];

const BY_SERIES = new Map(ALL.flatMap((metric) => (metric.series === null ? [] : [[metric.series, metric] as const])));

/** What the chart of a typed series is measured in; null of an open series. */
export const unitOfTyped = (base: string): Unit | null => BY_SERIES.get(base)?.unit ?? null;

/** What a line of a typed series is called; null of an open series. */
export const labelOf = (base: string): string | null => LABELS[base]?.() ?? BY_SERIES.get(base)?.label ?? null;

/** What the lines are called. A metric that is new in the table has its own name until somebody translates it. */
const LABELS: Record<string, () => string> = {
  cpu_percent: m.allCores,
  memory_percent: m.used,
  memory_used: m.used,
  swap_used: m.swap,
  load_1: m.oneMinute,
  load_5: m.fiveMinutes,
  load_15: m.fifteenMinutes,
  process_count: m.running,
  cpu_core: m.core,
  disk_used: m.used,
  disk_percent: m.diskFull,
  disk_read: m.read,
  disk_write: m.write,
  network_out: m.outgoing,
  network_in: m.incoming,
  temperature: m.temperature,
  container_cpu: m.containerCpu,
  container_memory: m.containerMemory,
  container_network_in: m.incoming,
  container_network_out: m.outgoing,
};

/** What thresholds are about, and their unit as the label of a field has it. */
const THRESHOLDS: Record<string, [label: () => string, counts: () => string]> = {
  cpu: [m.cpuName, m.percentUnit],
  memory: [m.memoryName, m.percentUnit],
  swap: [m.swapName, m.percentUnit],
  disk: [m.diskName, m.diskUnit],
  load: [m.loadName, m.loadUnit],
  network_in: [m.networkInName, m.networkUnit],
  network_out: [m.networkOutName, m.networkUnit],
  temperature: [m.temperatureName, m.temperatureUnit],
};

/** One value of a snapshot under the name that the history has. */
export interface Measured {
  name: string;
  value: number;
  isCounter: boolean;
}

type Entry = Record<string, unknown>;

/** Every value of a snapshot that has a series. */
export function* measuredIn(sample: Snapshot): Generator<Measured> {
  const parts = sample as unknown as Entry;
  for (const [series, { kind, list, of, key, place }] of BY_SERIES) {
    const isCounter = kind === 'counter';
    const entries = list === null ? [parts] : ((parts[list] ?? []) as unknown[]);
    const names = new Map<string, number>();
    for (const [nth, entry] of entries.entries()) {
      const found = of === null && list !== null ? entry : (entry as Entry)[key];
      const value = place === null ? found : (found as unknown[] | undefined)?.[place];
      if (typeof value !== 'number') continue;
      if (list === null) yield { name: series, value, isCounter };
      else
        yield { name: `${series}:${of === null ? nth : nameOf((entry as Entry)[of], list, names)}`, value, isCounter };
    }
  }
}

/** Entries may have the same name: the history numbers them, but for containers. */
function nameOf(given: unknown, list: string, names: Map<string, number>): string {
  const name = String(given);
  if (list === 'containers') return name;
  const count = (names.get(name) ?? 0) + 1;
  names.set(name, count);
  return count === 1 ? name : `${name}#${count}`;
}

/** A metric that thresholds are about: its series, what it has several of, and its words. */
export interface Watched extends Omit<ThresholdOf, 'label' | 'counts'> {
  label: () => string;
  counts: () => string;
  base: string;
  list: string | null;
}

/** In which order forms offer them; what is not here comes last. */
const FIRST = ['cpu', 'memory', 'swap', 'disk', 'load', 'network_in', 'network_out', 'temperature'];

function turn(watched: Watched): number {
  const place = FIRST.indexOf(watched.word);
  return place < 0 ? FIRST.length : place;
}

export const WATCHED: readonly Watched[] = ALL.flatMap(({ series, list, threshold }) => {
  if (!threshold || series === null) return [];
  const [label, counts] = THRESHOLDS[threshold.word] ?? [() => threshold.label, () => threshold.counts];
  return [{ ...threshold, label, counts, base: series, list }];
}).sort((one, other) => turn(one) - turn(other));
