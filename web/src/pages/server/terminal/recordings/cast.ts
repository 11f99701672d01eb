// Reads a recording of a terminal: an asciicast file of version 2. Pure.
//
// The file comes from a server that somebody may have changed, so nothing in it is taken for granted. Of its events only output and
// sizes are kept: what was typed is never shown, and markers of other programs have no meaning here.

/** The largest size of a terminal that the agent opens. */
const MOST_CELLS = 1000;

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
  const lines = text.split('\n');
  const first = parsed(lines.shift() ?? '');
  if (!isObject(first) || first.version !== 2) return null;
  const size = sizeOf(first.width, first.height);
  if (!size) return null;
  const cast: Cast = {
    size,
    startedAt: isNumber(first.timestamp) ? first.timestamp * 1000 : null,
    by: typeof first.by === 'string' && first.by !== '' ? first.by : null,
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

/** The sizes that the terminal had, each once. */
export function sizesOf(cast: Cast): Size[] {
  const found = new Map([[nameOf(cast.size), cast.size]]);
  for (const event of cast.events) if ('size' in event) found.set(nameOf(event.size), event.size);
  return [...found.values()];
}

const nameOf = ({ columns, rows }: Size) => `${columns}x${rows}`;

/** An event no earlier than the one before it; `other` for a kind that is not shown, null for what is no event. */
function eventOf(line: unknown, last: number): CastEvent | 'other' | null {
  if (!Array.isArray(line)) return null;
  const [time, kind, data] = line as unknown[];
  if (!isNumber(time) || typeof kind !== 'string' || typeof data !== 'string') return null;
  const seconds = Math.max(last, time);
  if (kind === 'o') return { seconds, output: data };
  if (kind !== 'r') return 'other';
  const [, columns, rows] = /^(\d+)x(\d+)$/.exec(data) ?? [];
  const size = sizeOf(Number(columns), Number(rows));
  return size && { seconds, size };
}

function sizeOf(columns: unknown, rows: unknown): Size | null {
  const isSize = (count: unknown): count is number =>
    Number.isInteger(count) && (count as number) >= 1 && (count as number) <= MOST_CELLS;
  return isSize(columns) && isSize(rows) ? { columns, rows } : null;
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
