// Colours of terminals (SGR) in lines of logs, as spans of text with a look. Pure; nothing becomes markup.

import { after, PLAIN, type Colour, type Look } from '../../lib/sgr';

export type { Look };

export interface Span {
  text: string;
  /** Null: as everything else. */
  look: Look | null;
}

const ESC = '\u001b';

/** Sequences of a terminal and characters that are not seen, but for the tabulator. */
const CONTROL =
  /\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[@-Z\\^_]|[\u0000-\u0008\u000a-\u001f\u007f]/g;
const SUSPECT = /[\u0000-\u0008\u000a-\u001f\u007f]/;

/** What is seen of a line that a program rewrote in place, as progress bars do: what it wrote last. */
export function rewritten(text: string): string {
  const end = text.endsWith('\r') ? text.length - 1 : text.length;
  return text.slice(text.lastIndexOf('\r', end - 1) + 1, end);
}

/** A line without anything that is not seen. */
export function strip(text: string): string {
  return SUSPECT.test(text) ? text.replace(CONTROL, '') : text;
}

/** A line as spans. Their texts joined are what [`strip`] gives. */
export function spans(text: string): Span[] {
  if (!text.includes(ESC)) return [{ text: strip(text), look: null }];
  const found: Span[] = [];
  let pen = PLAIN;
  let from = 0;
  const add = (piece: string) => {
    if (!piece) return;
    const look = pen.isInverse ? inverted(pen.look) : isPlain(pen.look) ? null : pen.look;
    found.push({ text: piece, look });
  };
  for (const control of text.matchAll(CONTROL)) {
    add(text.slice(from, control.index));
    from = control.index + control[0].length;
    if (!control[0].startsWith(`${ESC}[`) || !control[0].endsWith('m')) continue;
    const codes = control[0].slice(2, -1).split(/[;:]/).map(Number);
    pen = after(codes, pen, extended);
  }
  add(text.slice(from));
  return found;
}

/** `5;n` of the 256 or `2;r;g;b`, and how many codes that were. */
function extended(codes: number[]): [Colour | undefined, number] {
  const [kind, first = Number.NaN, second = Number.NaN, third = Number.NaN] = codes;
  if (kind === 5) return [of256(first), 2];
  if (kind === 2) return [isByte(first) && isByte(second) && isByte(third) ? rgb(first, second, third) : undefined, 4];
  return [undefined, 1];
}

/** The first sixteen are the theme's; then a cube of 6 × 6 × 6, then greys. */
function of256(code: number): Colour | undefined {
  if (!isByte(code)) return undefined;
  if (code < 16) return code;
  if (code >= 232) {
    const grey = 8 + (code - 232) * 10;
    return rgb(grey, grey, grey);
  }
  const step = (value: number) => (value === 0 ? 0 : 55 + value * 40);
  const cube = code - 16;
  return rgb(step(Math.floor(cube / 36)), step(Math.floor(cube / 6) % 6), step(cube % 6));
}

function isByte(value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= 255;
}

function rgb(red: number, green: number, blue: number): string {
  return `#${[red, green, blue].map((part) => part.toString(16).padStart(2, '0')).join('')}`;
}

function inverted(look: Look): Look {
  // Without colours of its own it is the background's colour on the text's.
  return { ...look, fg: look.bg ?? 0, bg: look.fg ?? 7 };
}

function isPlain(look: Look): boolean {
  return (
    look.fg === null && look.bg === null && !(look.bold || look.dim || look.italic || look.underline || look.strike)
  );
}

/** The sixteen as they are behind text, where the theme has no say. */
const SIXTEEN = [
  '#000000',
  '#b3261e',
  '#14713d',
  '#8a5200',
  '#2853cf',
  '#9a3fc0',
  '#0b6f80',
  '#d0d3da',
  '#626a7b',
  '#ff7b72',
  '#6bd596',
  '#f2bd62',
  '#8aa9ff',
  '#d08bf0',
  '#56d4dd',
  '#ffffff',
];

/** A colour as CSS writes it. */
export function css(colour: Colour): string {
  return typeof colour === 'string' ? colour : (SIXTEEN[colour] ?? '#000000');
}

/** What can be read on a colour: `fg` where it stands out enough, else black or white. */
export function readable(fg: Colour | null, bg: Colour): string {
  const ground = luminance(css(bg));
  if (fg !== null && contrast(luminance(css(fg)), ground) >= 4.5) return css(fg);
  return contrast(1, ground) >= contrast(0, ground) ? '#ffffff' : '#000000';
}

function contrast(one: number, other: number): number {
  return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
}

function luminance(hex: string): number {
  const part = (at: number) => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
}

/** A part of a text that was found: from where to where. */
export type Range = readonly [from: number, to: number];

export interface Piece extends Span {
  isFound: boolean;
}

/** Spans cut where what was found begins and ends. Ranges are in order and do not overlap. */
export function marked(line: Span[], ranges: readonly Range[]): Piece[] {
  const pieces: Piece[] = [];
  let at = 0;
  let next = 0;
  for (const span of line) {
    const end = at + span.text.length;
    let from = at;
    while (from < end) {
      while (next < ranges.length && (ranges[next]?.[1] ?? 0) <= from) next += 1;
      const range = ranges[next];
      const isFound = range !== undefined && range[0] <= from;
      const to = Math.min(end, range === undefined ? end : isFound ? range[1] : range[0]);
      pieces.push({ text: span.text.slice(from - at, to - at), look: span.look, isFound });
      from = to;
    }
    at = end;
  }
  return pieces;
}
