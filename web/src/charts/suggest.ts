// A threshold that a chart's own history suggests: what it is nearly always below, and a margin. Pure.
import type { Value } from './series';
import type { Unit } from './units';

export interface Suggestion {
  value: number;
  /** What 99 of 100 values do not exceed. */
  usual: number;
}

const SHARE = 0.99;
const MARGIN = 0.1;
/** Of fewer values nothing can be said. */
const LEAST_VALUES = 20;
/** A share of a whole: a limit of 100 % would never be exceeded. */
const MOST_PERCENT = 95;

/** What the greatest at each of many times suggest; null where there are too few. */
export function suggested(columns: readonly (readonly Value[])[], unit: Unit): Suggestion | null {
  const length = Math.max(0, ...columns.map((column) => column.length));
  const worst: number[] = [];
  for (let place = 0; place < length; place += 1) {
    let most = -Infinity;
    for (const column of columns) most = Math.max(most, column[place] ?? -Infinity);
    if (Number.isFinite(most)) worst.push(most);
  }
  if (worst.length < LEAST_VALUES) return null;
  worst.sort((one, other) => one - other);
  const usual = worst[Math.ceil(worst.length * SHARE) - 1] ?? 0;
  return { value: rounded(usual, unit), usual };
}

/** With the margin, up to what people would type: two digits that count. */
function rounded(usual: number, unit: Unit): number {
  const wanted = usual * (1 + MARGIN);
  if (wanted <= 0) return 1;
  const step = 10 ** (Math.floor(Math.log10(wanted)) - 1);
  const value = Number((Math.ceil(wanted / step - 1e-9) * step).toPrecision(6));
  if (unit !== 'percent') return value;
  // One that is that full already is watched where it is.
  return value <= MOST_PERCENT ? Math.ceil(value) : Math.max(MOST_PERCENT, Math.min(99, Math.ceil(usual) + 1));
}
