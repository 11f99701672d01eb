// Which containers a server had at a time, from the history. Pure.
import type { SeriesTable } from '../api/types';

export interface ContainerThen {
  name: string;
  cpu: number | null;
  memory: number | null;
}

const CPU = 'container_cpu:';
const MEMORY = 'container_memory:';

/** Names of series to read: of so many containers at most. */
export function namesOf(names: readonly string[], most: number): string[] {
  const containers = [...new Set(names.filter((name) => name.startsWith(CPU)).map((name) => name.slice(CPU.length)))];
  // Names are separated by commas when they are asked for.
  const kept = containers.filter((name) => !name.includes(',')).slice(0, most);
  return kept.flatMap((name) => [CPU + name, MEMORY + name]);
}

/** The containers with a value at a time, those that used the most first. */
export function containersAt(table: SeriesTable, at: number): ContainerThen[] {
  let place = -1;
  for (const [index, time] of table.timestamps.entries()) if (time <= at) place = index;
  if (place < 0) place = table.timestamps.length > 0 ? 0 : -1;
  const found = new Map<string, ContainerThen>();
  for (const [series, { avg }] of Object.entries(table.series)) {
    const value = avg[place] ?? null;
    const isCpu = series.startsWith(CPU);
    if (value === null || (!isCpu && !series.startsWith(MEMORY))) continue;
    const name = series.slice(isCpu ? CPU.length : MEMORY.length);
    const one = found.get(name) ?? { name, cpu: null, memory: null };
    found.set(name, isCpu ? { ...one, cpu: value } : { ...one, memory: value });
  }
  return [...found.values()].sort(
    (one, other) => (other.cpu ?? 0) - (one.cpu ?? 0) || (other.memory ?? 0) - (one.memory ?? 0),
  );
}
