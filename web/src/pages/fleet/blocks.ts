// Long lists are built a block at a time, where somebody looks. Every line of a list is as high as the others, so a block
// that is not built holds its place.

/** How many lines a block has: few enough to be built within a frame. */
export const LINES = { cards: 2, table: 8 } as const;

/** How far from the window a block is built, so that it is there when it is scrolled to. */
export const NEAR = '600px';

/** The least width of a card, and the gap between two, in pixels. */
const CARD = 300;
const GAP = 16;

/** How many cards stand side by side. */
export function columnsOf(width: number): number {
  return Math.max(1, Math.floor((width + GAP) / (CARD + GAP)));
}

/** Parts of `size`, the last one with what is left. */
export function chunked<T>(items: readonly T[], size: number): T[][] {
  const chunks: T[][] = [];
  for (let at = 0; at < items.length; at += size) chunks.push(items.slice(at, at + size));
  return chunks;
}
