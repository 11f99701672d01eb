// The columns of the table of the fleet: which there are, how wide they must be, and which of the chosen ones have room.
import type { SortKey } from './choice';

export const columnKeys = [
  'name',
  'status',
  'beats',
  'cpu',
  'course',
  'memory',
  'memoryCourse',
  'disk',
  'in',
  'out',
  'load',
  'uptime',
  'containers',
  'cores',
  'tags',
  'host',
  'os',
  'agent',
  'signed',
  'seen',
] as const;
export type ColumnKey = (typeof columnKeys)[number];

export interface Column {
  key: ColumnKey;
  /** What it needs, in pixels. */
  width: number;
  /** What it may take where there is room; the name takes the rest. */
  most?: number;
  /** What a press on its heading sorts by. */
  sort?: SortKey;
  /** Its values stand on the right. */
  isNumber?: boolean;
}

/** As they stand, from left to right. */
const columns: Record<ColumnKey, Omit<Column, 'key'>> = {
  name: { width: 158, sort: 'name' },
  status: { width: 130, sort: 'status' },
  beats: { width: 142, most: 210 },
  cpu: { width: 82, sort: 'cpu' },
  course: { width: 90, most: 150 },
  memory: { width: 82, sort: 'memory' },
  memoryCourse: { width: 90, most: 150 },
  disk: { width: 82, sort: 'disk' },
  in: { width: 84, sort: 'network', isNumber: true },
  out: { width: 84, isNumber: true },
  load: { width: 58, sort: 'load', isNumber: true },
  uptime: { width: 76, sort: 'uptime', isNumber: true },
  containers: { width: 94, sort: 'containers', isNumber: true },
  cores: { width: 62, isNumber: true },
  tags: { width: 120, most: 220 },
  host: { width: 120, most: 200 },
  os: { width: 130, most: 200 },
  agent: { width: 76 },
  signed: { width: 120, most: 220 },
  seen: { width: 104, sort: 'seen' },
};

/** Those that are shown to who has chosen none. */
export const usualColumns: readonly ColumnKey[] = [
  'name',
  'status',
  'beats',
  'cpu',
  'course',
  'memory',
  'disk',
  'in',
  'out',
  'load',
  'uptime',
  'containers',
];

/** Who gets room first. */
const rank: readonly ColumnKey[] = [
  'name',
  'status',
  'cpu',
  'memory',
  'disk',
  'beats',
  'course',
  'in',
  'out',
  'load',
  'uptime',
  'containers',
  'memoryCourse',
  'tags',
  'host',
  'seen',
  'cores',
  'agent',
  'signed',
  'os',
];

/** Those of the chosen columns that fit into a width, as they stand. Nothing ever has to be scrolled sideways. */
export function fitting(chosen: readonly ColumnKey[], width: number): Column[] {
  // On a phone the name makes room for two numbers beside it.
  const nameWidth = width < 480 ? 116 : columns.name.width;
  let left = width - nameWidth;
  const found = new Set<ColumnKey>(['name']);
  for (const key of rank) {
    if (found.has(key) || !chosen.includes(key) || columns[key].width > left) continue;
    found.add(key);
    left -= columns[key].width;
  }
  return columnKeys
    .filter((key) => found.has(key))
    .map((key) => ({ key, ...columns[key], ...(key === 'name' ? { width: nameWidth } : {}) }));
}

/** The tracks of a grid of columns. */
export function tracksOf(shown: readonly Column[]): string {
  return shown
    .map(({ key, width, most }) => track(`${width}px`, key === 'name' ? '1fr' : `${most ?? width}px`))
    .join(' ');
}

function track(least: string, most: string): string {
  return `minmax(${least}, ${most})`;
}

/** What somebody chose, as it was kept; null where that is not a choice. */
export function chosenColumns(text: string | null): ColumnKey[] | null {
  try {
    const kept: unknown = JSON.parse(text ?? 'null');
    if (!Array.isArray(kept)) return null;
    return columnKeys.filter((key) => key === 'name' || kept.includes(key));
  } catch {
    return null;
  }
}
