// Reads a recording of a terminal: an asciicast file of version 2. Pure.
//
// The file comes from a server that somebody may have changed, so nothing in it is taken for granted. Of its events only output and
// sizes are kept: what was typed is never shown, and markers of other programs have no meaning here.

/** The largest width and height of a terminal that the agent opens. */
const LONGEST_SIDE = 1000;
/** More than that on a screen costs so much memory and time at each change of size that the page stops. */
const MOST_CELLS = 100_000;
/** Narrower than that, each line of the text that can be scrolled back to becomes many. */
const LEAST_COLUMNS = 10;
/** The times that a date can have, in milliseconds. */
const LATEST_MS = 8.64e15;
/** No terminal is open for longer than 10 years. */
const LONGEST_SECONDS = 10 * 366 * 86_400;
/** Who opened it is a name and an address. */
const MOST_OF_BY = 200;
/** Sizes for which room is kept. */
const MOST_SIZES = 8;

export interface Size {
  columns: number;
  rows: number;
}

/** Something that the terminal showed, or its new size. `seconds` count from the beginning. */
export type CastEvent = { seconds: number } & ({ output: string } | { size: Size });

export interface Cast {
  size: Size;
  /** In milliseconds since 1970; null where the file does not say it. */
  startedAt: number | null;
  /** Who opened the terminal; null where the file does not say it. */
  by: string | null;
  /** In the order of the file, with times that never go back. */
  events: CastEvent[];
  /** Lines that are no events: the last one is cut off if the file was not ended in an orderly way. */
  unreadable: number;
}

/** Returns null for a file that does not begin as an asciicast of version 2. */
export function parseCast(text: string): Cast | null {
  const lines = linesOf(text);
  const first = parsed(lines.next().value ?? '');
  if (!isObject(first) || first.version !== 2) return null;
  const size = sizeOf(first.width, first.height);
  if (!size) return null;
  const cast: Cast = {
    size: { ...size, columns: Math.max(LEAST_COLUMNS, size.columns) },
    startedAt: startOf(first.timestamp),
    by: typeof first.by === 'string' ? plainName(first.by) || null : null,
    events: [],
    unreadable: 0,
  };
  let last = 0;
  for (const line of lines) {
    if (line.trim() === '') continue;
    const event = eventOf(parsed(line), last);
    if (event === null) cast.unreadable += 1;
    else if (event !== 'other') {
      last = event.seconds;
      cast.events.push(event);
    }
  }
  return cast;
}

/** The highest sizes that the terminal had, each once. */
export function sizesOf(cast: Cast): Size[] {
  const found = new Map([[keyOf(cast.size), cast.size]]);
  for (const event of cast.events) if ('size' in event) found.set(keyOf(event.size), event.size);
  return [...found.values()].sort((a, b) => b.rows - a.rows || a.columns - b.columns).slice(0, MOST_SIZES);
}

const keyOf = ({ columns, rows }: Size) => columns * (LONGEST_SIDE + 1) + rows;

/** One line at a time: a file of line ends alone would be millions of them. */
function* linesOf(text: string): Generator<string, undefined> {
  for (let from = 0; from <= text.length;) {
    const found = text.indexOf('\n', from);
    const end = found === -1 ? text.length : found;
    yield text.slice(from, end);
    from = end + 1;
  }
}

/** In milliseconds; null for a time that is no date, or so late that its end is none. */
function startOf(timestamp: unknown): number | null {
  if (!isNumber(timestamp)) return null;
  const ms = timestamp * 1000;
  return Math.abs(ms) <= LATEST_MS - LONGEST_SECONDS * 1000 ? ms : null;
}

/** A name without characters that are no text: control characters, and those that turn the direction of what follows. */
export function plainName(text: string): string {
  const name = text
    .slice(0, 4 * MOST_OF_BY)
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '');
  return [...name.trim()].slice(0, MOST_OF_BY).join('');
}

/** An event no earlier than the one before it; `other` for what is not shown, null for what is no event. */
function eventOf(line: unknown, last: number): CastEvent | 'other' | null {
  if (!Array.isArray(line)) return null;
  const [time, kind, data] = line as unknown[];
  if (!isNumber(time) || time > LONGEST_SECONDS || typeof kind !== 'string' || typeof data !== 'string') return null;
  const seconds = Math.max(last, time);
  if (kind === 'o') return { seconds, output: data };
  if (kind !== 'r') return 'other';
  const [, columns, rows] = /^(\d+)x(\d+)$/.exec(data) ?? [];
  const size = sizeOf(Number(columns), Number(rows));
  if (size === null) return null;
  return size.columns < LEAST_COLUMNS ? 'other' : { seconds, size };
}

/** With no more rows than a screen of that width can have here. */
function sizeOf(columns: unknown, rows: unknown): Size | null {
  const isSide = (count: unknown): count is number =>
    Number.isInteger(count) && (count as number) >= 1 && (count as number) <= LONGEST_SIDE;
  if (!isSide(columns) || !isSide(rows)) return null;
  return { columns, rows: Math.min(rows, Math.floor(MOST_CELLS / Math.max(columns, LEAST_COLUMNS))) };
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
