// What programs write for terminals, made into text: colours are kept, everything else that moves a cursor is left out.
import { after, PLAIN, type Pen } from '../../../lib/sgr';

export interface Style {
  /** 0 to 15, as terminals count them; null is the text's own. */
  colour: number | null;
  bold: boolean;
}

export interface Styled extends Style {
  text: string;
}

/** CSI, OSC, DCS and the like, and the short ones. */
const SEQUENCE =
  /\x1b(?:\[([0-9;:?<=>]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-OQ-WYZ\\`-~])/g;

/** Control characters that mean nothing in a text. */
const CONTROLS = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/g;

/** A sequence that is not complete after so much is none. */
const LONGEST = 512;

/** Reads one stream, piece by piece: a sequence may begin in one piece and end in the next. */
export class Ansi {
  #pen = PLAIN;
  #rest = '';

  read(piece: string): Styled[] {
    let text = this.#rest + piece;
    this.#rest = '';
    const open = unfinished(text);
    if (open >= 0) {
      this.#rest = text.slice(open);
      text = text.slice(0, open);
    }
    const found: Styled[] = [];
    let from = 0;
    for (const match of text.matchAll(SEQUENCE)) {
      this.#push(found, text.slice(from, match.index));
      from = match.index + match[0].length;
      if (match[2] === 'm') this.#pen = after(codesOf(match[1] ?? ''), this.#pen, extended);
    }
    this.#push(found, text.slice(from));
    return found;
  }

  #push(found: Styled[], raw: string): void {
    // A line that was written over was a line; a progress bar leaves one for each of its steps.
    const text = raw.replace(/\r+\n/g, '\n').replace(/\r+/g, '\n').replace(CONTROLS, '');
    if (text) found.push({ text, ...styleOf(this.#pen) });
  }
}

/** Where something begins that the next piece may complete; -1 when nothing does. */
function unfinished(text: string): number {
  const escape = text.lastIndexOf('\x1b');
  // The end of a string sequence is an escape itself: the one before it is what is not complete then.
  const start = escape > 0 && escape === text.length - 1 ? text.lastIndexOf('\x1b', escape - 1) : escape;
  for (const at of [start, escape]) {
    if (at < 0 || text.length - at > LONGEST) continue;
    SEQUENCE.lastIndex = at;
    const match = SEQUENCE.exec(text);
    SEQUENCE.lastIndex = 0;
    if (match?.index !== at) return at;
  }
  return text.endsWith('\r') ? text.length - 1 : -1;
}

function styleOf({ look }: Pen): Style {
  return { colour: typeof look.fg === 'number' ? look.fg : null, bold: look.bold };
}

/** What is no number is a terminal's own matter. */
function codesOf(parameters: string): number[] {
  return parameters
    .split(/[;:]/)
    .map(Number)
    .filter((code) => !Number.isNaN(code));
}

/** Of 256 colours the first sixteen are known by name; what follows belongs to this code in any case. */
function extended([kind, named = 0]: number[]): [number | null, number] {
  return kind === 5 ? [named < 16 ? named : null, 2] : [null, 4];
}
