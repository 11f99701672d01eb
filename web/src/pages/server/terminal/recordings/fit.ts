import type { Size } from './cast';

const SMALLEST_TEXT = 8;
const LARGEST_TEXT = 14;
const STEP = 0.25;

/** How wide and high a character is, of a text of 1 px. */
export interface Character {
  width: number;
  height: number;
}

export interface Box {
  width: number;
  height: number;
}

const heightOf = (rows: number, text: number, character: Character) => rows * Math.ceil(character.height * text);

/**
 * The largest text, in pixels, with which a terminal fits into a box; the smallest that can be read where none does. The
 * emulator rounds the height of a row up.
 */
export function textThatFits(terminal: Size, box: Box, character: Character): number {
  for (let text = LARGEST_TEXT; text > SMALLEST_TEXT; text -= STEP) {
    const width = terminal.columns * character.width * text;
    if (width <= box.width && heightOf(terminal.rows, text, character) <= box.height) return text;
  }
  return SMALLEST_TEXT;
}

/** The height that is kept free for all sizes of a terminal, so that nothing moves when it changes from one to another. */
export function roomFor(sizes: readonly Size[], box: Box, character: Character): number {
  const heights = sizes.map((size) => heightOf(size.rows, textThatFits(size, box, character), character));
  const highest = heights.reduce((most, height) => Math.max(most, height), 0);
  return Math.min(box.height, highest);
}
