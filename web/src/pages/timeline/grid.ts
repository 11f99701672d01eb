// The rows of the heat map: which server stands where, and what it has at a time. Pure.

/** What a server had in each bucket, as the service gives it. */
export interface HeatRow {
  /** Seconds. */
  start: number;
  width: number;
  /** What the values are divided by. */
  scale: number;
  mean: readonly (number | null)[];
  max: readonly (number | null)[];
  /** The highest mean and the highest value of all buckets; null where nothing was measured. */
  top: { mean: number; max: number } | null;
  /** What it is sorted by: the mean of its highest buckets. */
  score: number;
}

export type Which = 'mean' | 'max';

/** Servers are sorted by so large a part of their buckets: a single one says little. */
const SCORED_SHARE = 0.05;

/** A row as it is drawn. */
export function heatRow(given: Pick<HeatRow, 'start' | 'width' | 'scale' | 'mean' | 'max'>): HeatRow {
  const values = given.mean.filter((value) => value !== null).sort((one, other) => other - one);
  const scored = values.slice(0, Math.max(1, Math.round(given.mean.length * SCORED_SHARE)));
  const sum = scored.reduce((total, value) => total + value, 0);
  const highest = given.max.reduce<number>((most, value) => Math.max(most, value ?? -Infinity), -Infinity);
  const top = values[0] === undefined ? null : { mean: values[0] / given.scale, max: highest / given.scale };
  return { ...given, top, score: top === null ? -Infinity : sum / scored.length / given.scale };
}

/** The number of the bucket with a time; it may lie beyond the row. */
export function placeOf(row: Pick<HeatRow, 'start' | 'width'>, at: number): number {
  return Math.floor((at - row.start) / row.width);
}

/** What a row has at a time; null where nothing was measured. */
export function valueAt(row: HeatRow | undefined, at: number, which: Which): number | null {
  if (!row) return null;
  const value = row[which][placeOf(row, at)];
  return value == null ? null : value / row.scale;
}

/** From when to when the bucket with a time lasts. */
export function bucketAt({ start, width }: Pick<HeatRow, 'start' | 'width'>, at: number): { from: number; to: number } {
  const from = start + Math.floor((at - start) / width) * width;
  return { from, to: from + width };
}

/** Buckets side by side that look the same, so that they are painted at once. */
export function* runs<T>(values: readonly T[], first: number, end: number): Generator<[from: number, to: number, T]> {
  let from = first;
  while (from < end) {
    const value = values[from] as T;
    let to = from + 1;
    while (to < end && values[to] === value) to += 1;
    yield [from, to, value];
    from = to;
  }
}

export type Order = 'worst' | 'name';

export interface Named {
  id: string;
  name: string;
  tags: readonly string[];
}

/** A line of the map: a server, or the head of a group. */
export type Entry = { kind: 'server'; id: string; name: string } | { kind: 'group'; tag: string | null; count: number };

/** All lines in their order. A server with several tags stands in the group of the first of them. */
export function entriesOf(
  servers: readonly Named[],
  how: { order: Order; isGrouped: boolean },
  scoreOf: (id: string) => number,
): Entry[] {
  const collator = new Intl.Collator(undefined, { numeric: true });
  const byName = (one: Named, other: Named) => collator.compare(one.name, other.name);
  const scores = new Map<string, number>();
  if (how.order === 'worst') for (const { id } of servers) scores.set(id, scoreOf(id));
  const score = (server: Named) => scores.get(server.id) ?? -Infinity;
  const byScore = (one: Named, other: Named) => {
    const [first, second] = [score(one), score(other)];
    return first === second ? byName(one, other) : second - first;
  };
  const sorted = [...servers].sort(how.order === 'worst' ? byScore : byName);
  const entry = ({ id, name }: Named): Entry => ({ kind: 'server', id, name });
  if (!how.isGrouped) return sorted.map(entry);
  const groups = new Map<string | null, Named[]>();
  for (const server of sorted) {
    const tag = [...server.tags].sort()[0] ?? null;
    const group = groups.get(tag);
    if (group) group.push(server);
    else groups.set(tag, [server]);
  }
  const inOrder = [...groups].sort(([one, first], [other, second]) => {
    if (one === null || other === null) return one === null ? 1 : -1;
    const [top, next] = [first[0], second[0]];
    const byWorst = how.order === 'worst' && top && next ? score(next) - score(top) : 0;
    return byWorst || one.localeCompare(other);
  });
  return inOrder.flatMap(([tag, own]) => [{ kind: 'group', tag, count: own.length } as Entry, ...own.map(entry)]);
}

/** Those whose name or tags have the text. */
export function found<T extends Named>(servers: readonly T[], tag: string | null, text: string): T[] {
  const wanted = text.trim().toLowerCase();
  return servers.filter(
    (server) =>
      (tag === null || server.tags.includes(tag)) &&
      (wanted === '' || `${server.name} ${server.tags.join(' ')}`.toLowerCase().includes(wanted)),
  );
}

/** The servers with the highest values at a time, the highest first. */
export function highest(
  ids: Iterable<string>,
  rowOf: (id: string) => HeatRow | undefined,
  at: number,
  which: Which,
  most: number,
): { id: string; value: number }[] {
  const all: { id: string; value: number }[] = [];
  for (const id of ids) {
    const value = valueAt(rowOf(id), at, which);
    if (value !== null) all.push({ id, value });
  }
  return all.sort((one, other) => other.value - one.value).slice(0, most);
}

/** So many of the highest values are listed first. */
export const FIRST_LISTED = 10;
/** And so many at most: each is a row of a table, which is made again as the cursor moves. */
export const MOST_LISTED = 200;

/** How many values a list has, and how many it has after a press of its button; null where there is nothing to press. */
export function listing(isLong: boolean, total: number): { most: number; next: number | null } {
  const long = Math.min(total, MOST_LISTED);
  if (total <= FIRST_LISTED) return { most: FIRST_LISTED, next: null };
  return isLong ? { most: long, next: FIRST_LISTED } : { most: FIRST_LISTED, next: long };
}

/** How high a line is: as high as the window allows, so that few servers fill it and many can be seen together. */
export function lineHeight(count: number, room: number): number {
  return Math.floor(Math.min(30, Math.max(16, room / Math.max(1, count))));
}

/** Which lines a window shows, with some on both sides. */
export function inSight(top: number, room: number, height: number, count: number): { first: number; end: number } {
  const first = Math.max(0, Math.floor(top / height) - 2);
  return { first: Math.min(first, count), end: Math.min(count, Math.ceil((top + room) / height) + 2) };
}
