// What stays still on the screen while lines come and rows are measured. Pure.
import type { Rows } from './rows';

export interface Anchor {
  /** A line. */
  number: number;
  /** How far its row is scrolled into; less than nothing where what is seen begins above it. */
  into: number;
  /** It was opened or closed: all of it is in sight, or what fits from its beginning on. */
  isHeld: boolean;
}

/** Where what is seen, which has this height, begins by its anchor. */
export function sightBy({ number, into, isHeld }: Anchor, rows: Rows, height: number): number {
  const row = rows.rowOf(number);
  const isThere = row < rows.end && rows.number(row) === number;
  const within = isHeld ? Math.min(0, Math.max(into, rows.height(row) - height)) : into;
  return Math.max(0, Math.min(rows.total - height, rows.top(row) + (isThere ? within : 0)));
}
