// How programs colour text for terminals: the codes of one sequence that ends with `m` (SGR).

/** A colour: one of the sixteen by its number, or a colour of its own. */
export type Colour = number | string;

export interface Look {
  fg: Colour | null;
  bg: Colour | null;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
  strike: boolean;
}

/** What holds for the text that follows. */
export interface Pen {
  look: Look;
  isInverse: boolean;
}

/** Reads what follows 38 or 48: the colour, undefined where it stays as it was, and how many codes that were. */
export type Extended = (codes: number[]) => [colour: Colour | null | undefined, used: number];

export const PLAIN: Pen = {
  look: { fg: null, bg: null, bold: false, dim: false, italic: false, underline: false, strike: false },
  isInverse: false,
};

/** The pen behind the codes of one sequence. */
export function after(codes: number[], before: Pen, extended: Extended): Pen {
  let look = { ...before.look };
  let isInverse = before.isInverse;
  for (let index = 0; index < codes.length; index += 1) {
    const code = codes[index] ?? 0;
    if (code === 0 || Number.isNaN(code)) [look, isInverse] = [{ ...PLAIN.look }, false];
    else if (code === 1) look.bold = true;
    else if (code === 2) look.dim = true;
    else if (code === 3) look.italic = true;
    else if (code === 4) look.underline = true;
    else if (code === 7) isInverse = true;
    else if (code === 9) look.strike = true;
    else if (code === 22) look.bold = look.dim = false;
    else if (code === 23) look.italic = false;
    else if (code === 24) look.underline = false;
    else if (code === 27) isInverse = false;
    else if (code === 29) look.strike = false;
    else if (code >= 30 && code <= 37) look.fg = code - 30;
    else if (code === 39) look.fg = null;
    else if (code >= 40 && code <= 47) look.bg = code - 40;
    else if (code === 49) look.bg = null;
    else if (code >= 90 && code <= 97) look.fg = code - 82;
    else if (code >= 100 && code <= 107) look.bg = code - 92;
    else if (code === 38 || code === 48) {
      const [colour, used] = extended(codes.slice(index + 1));
      index += used;
      if (colour === undefined) continue;
      if (code === 38) look.fg = colour;
      else look.bg = colour;
    }
  }
  return { look, isInverse };
}
