// How a line of JSON or logfmt stands in one row: its message, then a few of its fields. Pure.
import { marked, strip, type Piece, type Range } from './ansi';
import { parse, straight } from './structured';

export type Part = 'message' | 'name' | 'value';

export interface Segment {
  part: Part;
  text: string;
}

const MOST_FIELDS = 8;
/** Fields that would make most rows two lines high are left to the details. */
const MOST_CHARACTERS = 80;
const MOST_VALUE = 60;
const MOST_MESSAGE = 2_000;

/** The parts of a line that is JSON or logfmt; null for one that is only text. */
export function segments(plain: string): Segment[] | null {
  const parsed = parse(plain);
  if (!parsed) return null;
  const fields = parsed.fields();
  const found: Segment[] = [];
  if (parsed.message) found.push({ part: 'message', text: oneLine(parsed.message, MOST_MESSAGE) });
  let [count, characters] = [0, 0];
  for (const { name, value } of fields.slice(0, MOST_FIELDS)) {
    const pair = [oneLine(name, MOST_VALUE), oneLine(value, MOST_VALUE)] as const;
    characters += pair[0].length + pair[1].length + 3;
    if (count > 0 && characters > MOST_CHARACTERS) break;
    found.push({ part: 'name', text: `${found.length > 0 ? '  ' : ''}${pair[0]}=` }, { part: 'value', text: pair[1] });
    count += 1;
  }
  if (fields.length > count) found.push({ part: 'name', text: `  +${fields.length - count}` });
  // Nothing that could be shown: `{}`.
  return found.length > 0 ? found : null;
}

/** Without what a terminal would do with it, and cut where it is long. */
function oneLine(text: string, most: number): string {
  const plain = straight(strip(text.slice(0, most + 200).replace(/[\r\n\t]+/g, ' ')));
  return plain.length > most ? `${plain.slice(0, most)}…` : plain;
}

/** What all parts say one after the other. */
export function textOf(parts: readonly Segment[]): string {
  return parts.map(({ text }) => text).join('');
}

/** Parts, cut where what was found begins and ends. */
export function markedParts(parts: readonly Segment[], ranges: readonly Range[]): (Piece & { part: Part })[] {
  let start = 0;
  return parts.flatMap(({ part, text }) => {
    const [from, to] = [start, start + text.length];
    start = to;
    const own = ranges.filter((range) => range[0] < to && range[1] > from);
    const shifted = own.map((range): Range => [Math.max(0, range[0] - from), Math.min(to, range[1]) - from]);
    return marked([{ text, look: null }], shifted).map((piece) => ({ ...piece, part }));
  });
}
