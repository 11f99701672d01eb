// The times that views of a dashboard were zoomed to, as the address has them: `zoom=VIEW.COUNT.FROM.TO`, with commas between. Pure.
import type { Range } from '../../charts/ranges';

/** By the names that [`keysOf`] gives the views. */
export type Zooms = ReadonlyMap<string, Range>;

export function zoomsOf(query: URLSearchParams): Zooms {
  const zooms = new Map<string, Range>();
  for (const text of (query.get('zoom') ?? '').split(',')) {
    const [, id, count, from, to] = /^([0-9a-f-]{36})\.(\d{1,2})\.(\d{1,11})\.(\d{1,11})$/.exec(text) ?? [];
    const range: Range = { kind: 'fixed', from: Number(from), to: Number(to) };
    if (id !== undefined && range.to > range.from) zooms.set(`${id} ${count}`, range);
  }
  return zooms;
}

/** What the address says when one of them shows another time, or its own again. */
export function zoomed(zooms: Zooms, key: string, range: Range | null): string | null {
  const all = new Map(zooms);
  all.delete(key);
  if (range) all.set(key, range);
  const texts = [...all].flatMap(([of, one]) =>
    one.kind === 'fixed' ? [[of.replace(' ', '.'), one.from, one.to].join('.')] : [],
  );
  return texts.join(',') || null;
}
