// Long lists build only the lines near the window. Every line of a list is as high as the others, so that where a line stands
// follows from its number.

/** How far from the window a line is built, in pixels: it is there when it is scrolled to. */
export const NEAR = 480;

/** Lines are built and dropped in steps of so many, so that a scroll does not change the list at each pixel. */
const STEP = 4;

/** Lines from `first` up to, and not including, `end`. */
export interface Span {
  first: number;
  end: number;
}

/** The lines of a list to build. `top` is where the list begins, seen from the upper edge of a window of so much height. */
export function spanOf(top: number, height: number, lines: number, line: number): Span {
  const first = Math.floor((-top - NEAR) / line / STEP) * STEP;
  const end = Math.ceil((height - top + NEAR) / line / STEP) * STEP;
  const least = Math.max(0, Math.min(first, lines));
  return { first: least, end: Math.max(least, Math.min(end, lines)) };
}

/** The numbers in a span, and those that are kept wherever they stand: what has the focus. */
export function numbersOf({ first, end }: Span, kept: readonly number[]): number[] {
  const numbers = Array.from({ length: end - first }, (_, index) => first + index);
  const others = kept.filter((number) => number < first || number >= end);
  return others.length > 0 ? [...numbers, ...others].sort((a, b) => a - b) : numbers;
}

/** The least width of a card, and the gap between two, in pixels. */
const CARD = 300;
const GAP = 12;

/** How many cards stand side by side. */
export function columnsOf(width: number): number {
  return Math.max(1, Math.floor((width + GAP) / (CARD + GAP)));
}
