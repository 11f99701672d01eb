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
  /** The status is a mark before the name. */
  hasStatus?: boolean;
  /** Tags stand beside the name: where they have no column, and the name gets enough of what the others leave. */
  hasTags?: boolean;
}

/** A table below this width, in pixels, is that of a phone. */
export const PHONE = 520;
/** What it gives a name with its mark, and a share of a whole. */
const PHONE_WIDTHS: Partial<Record<ColumnKey, number>> = { name: 100, cpu: 76, memory: 76, disk: 76 };
/** Beside a name that has less room, tags would be fragments. */
const ROOM_OF_TAGS = 260;

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

/**
 * Those of the chosen columns that fit into a width, as they stand. Nothing ever has to be scrolled sideways. On a phone the
 * numbers are worth more than the word of the status: that is a mark before the name.
 */
export function fitting(chosen: readonly ColumnKey[], width: number): Column[] {
  const isPhone = width < PHONE;
  const needs = (key: ColumnKey) => (isPhone && PHONE_WIDTHS[key]) || columns[key].width;
  const found = new Set<ColumnKey>(['name']);
  let left = width - needs('name');
  for (const key of rank) {
    if (found.has(key) || !chosen.includes(key) || needs(key) > left || (isPhone && key === 'status')) continue;
    found.add(key);
    left -= needs(key);
  }
  const shown = columnKeys
    .filter((key) => found.has(key))
    .map((key): Column => ({ key, ...columns[key], width: needs(key) }));
  const [name, ...others] = shown;
  if (name) {
    name.hasStatus = isPhone && chosen.includes('status');
    name.hasTags =
      !found.has('tags') && others.reduce((room, one) => room - (one.most ?? one.width), width) >= ROOM_OF_TAGS;
  }
  return shown;
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
