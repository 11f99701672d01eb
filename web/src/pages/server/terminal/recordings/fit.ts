import type { Size } from './cast';

const SMALLEST_TEXT = 8;
const LARGEST_TEXT = 14;
const STEP = 0.25;

/** How wide and high a character is, of a text of 1 px. */
export interface Character {
  width: number;
  height: number;
}

/**
 * The largest text, in pixels, with which a terminal fits into a box; the smallest that can be read where none does. The
 * emulator rounds the height of a row up.
 */
export function textThatFits(terminal: Size, box: { width: number; height: number }, character: Character): number {
  for (let text = LARGEST_TEXT; text > SMALLEST_TEXT; text -= STEP) {
    const width = terminal.columns * character.width * text;
    const height = terminal.rows * Math.ceil(character.height * text);
    if (width <= box.width && height <= box.height) return text;
  }
  return SMALLEST_TEXT;
}
