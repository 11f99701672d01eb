// A chart as the rows of a table: few enough to be read, none of its peaks lost. Pure.
import { firstFrom, type Gap } from './gaps';
import type { Line } from './lines';
import type { Span } from './ranges';
import type { Shown } from './shown';
import { thin } from './thin';

export interface Row {
  at: number;
  values: Shown[];
  /** Of this time there is no data. */
  gap: Gap | null;
}

/** Nobody reads more. */
const MOST_ROWS = 60;

/** The newest first. */
export function rowsOf(times: number[], lines: readonly Line[], span: Span, gaps: readonly Gap[]): Row[] {
  const banded = lines.map(({ column }) => ({ column, hasBand: true }));
  const made = thin(times, banded, span, MOST_ROWS);
  const rows: Row[] = gaps.map((gap) => ({ at: gap.from, values: [], gap }));
  const until = firstFrom(made.times, span.to + 1);
  for (let place = firstFrom(made.times, span.from); place < until; place += 1) {
    const values = made.columns.map((column): Shown => {
      const [value, least, most] = [column.avg[place] ?? null, column.min[place] ?? null, column.max[place] ?? null];
      return { value, edge: least !== null && most !== null && least !== most ? { least, most } : null };
    });
    if (values.some(({ value }) => value !== null)) rows.push({ at: made.times[place] ?? 0, values, gap: null });
  }
  return unique(rows.sort((one, other) => other.at - one.at || (one.gap ? -1 : 1)));
}

/** A gap begins at the time of the last point before it: it has the second after. */
function unique(rows: Row[]): Row[] {
  const taken = new Set<number>();
  return [...rows]
    .reverse()
    .map((row) => {
      let { at } = row;
      while (taken.has(at)) at += 1;
      taken.add(at);
      return { ...row, at };
    })
    .reverse();
}
