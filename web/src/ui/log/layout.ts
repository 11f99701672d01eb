// How high a row will be before it is drawn. Pure.
import type { Line } from './lines';

/** Longer lines are shown in part until somebody asks for the rest. */
export const SHOWN_CHARACTERS = 5_000;
/** A line of JSON is shown as its message and a few fields: about so long. */
const FORMATTED_CHARACTERS = 160;

export interface Layout {
  lineHeight: number;
  /** Characters that fit beside time and mark; null: lines are not wrapped. */
  columns: number | null;
}

/** A guess, right for most lines; what is drawn is measured. */
export function heightOf(line: Line, layout: Layout, how: { isWhole: boolean; isFormatted: boolean }): number {
  const { lineHeight, columns } = layout;
  if (columns === null) return lineHeight;
  const tag = line.stream && line.stream !== 'stdout' ? line.stream.length + 1 : 0;
  const origin = line.origin ? line.origin.name.length + 1 : 0;
  let { length } = line.plain;
  if (!how.isWhole) length = Math.min(length, SHOWN_CHARACTERS);
  if (how.isFormatted && line.plain.startsWith('{')) length = Math.min(length, FORMATTED_CHARACTERS);
  return lineHeight * Math.max(1, Math.ceil((length + tag + origin) / columns));
}
