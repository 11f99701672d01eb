// Thousands of servers on one picture: a square each, which is drawn and not built of elements. Pure.

export interface Grid {
  columns: number;
  rows: number;
  /** From one square to the next, in pixels. */
  step: number;
  /** Of a square, without the gap to the next. */
  size: number;
}

/** Squares need not be larger. */
const MOST = 28;

/** As many squares as there are servers, as large as they can be. */
export function gridOf(count: number, width: number, height: number): Grid {
  if (count === 0 || width < 1 || height < 1) return { columns: 1, rows: 1, step: 1, size: 1 };
  // The largest whole number of pixels by which all fit; less than one where there are more servers than pixels.
  let step = Math.min(MOST, Math.floor(Math.sqrt((width * height) / count)) + 1);
  const fits = (size: number) => Math.floor(width / size) * Math.floor(height / size) >= count;
  while (step > 1 && !fits(step)) step -= 1;
  if (!fits(step)) step = Math.sqrt((width * height) / count) * 0.99;
  const columns = Math.max(1, Math.floor(width / step));
  return { columns, rows: Math.ceil(count / columns), step, size: step >= 4 ? step - 1 : step };
}

/** Which square is at a point; null where none is. */
export function squareAt({ columns, step }: Grid, count: number, x: number, y: number): number | null {
  const column = Math.floor(x / step);
  const index = Math.floor(y / step) * columns + column;
  return column >= 0 && column < columns && index >= 0 && index < count ? index : null;
}

/** How strong a square's colour is: one that has nothing to do is faint. */
export function strength(cpuPercent: number | null): number {
  return cpuPercent === null ? 0.3 : 0.3 + 0.7 * Math.min(1, Math.max(0, cpuPercent / 100));
}
