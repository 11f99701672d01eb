// Paints the visible part of the heat map. It is painted again as a whole: some thousand rectangles take a few milliseconds.
import type { Span } from '../../charts/ranges';
import { placeOf, runs, type Entry, type HeatRow, type Which } from './grid';
import { colourOf, type Ramp } from './ramp';

export interface Inks {
  /** Rows that are not read yet. */
  waiting: string;
  /** Nothing was measured. */
  hatch: string;
  hatchGround: string;
  alert: string;
  cursor: string;
  grid: string;
}

/** From when to when an alert was open. */
export interface Firing {
  from: number;
  to: number;
}

export interface Picture {
  width: number;
  height: number;
  span: Span;
  /** Times with a line across, seconds. */
  ticks: readonly number[];
  entries: readonly Entry[];
  first: number;
  end: number;
  /** The height of a line, and how far the map is scrolled. */
  line: number;
  scrolled: number;
  rowOf: (id: string) => HeatRow | undefined;
  firingsOf: (id: string) => readonly Firing[];
  which: Which;
  top: number;
  ramp: Ramp;
  inks: Inks;
  cursor: number | null;
  /** The line of the pointer. */
  pointed: string | null;
  pinned: { id: string; from: number; to: number } | null;
}

const HATCH = 6;

export function paint(context: CanvasRenderingContext2D, picture: Picture, ratio: number): void {
  const { width, height, span } = picture;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  const x = (at: number) => ((at - span.from) / (span.to - span.from)) * width;
  const hatch = hatching(context, picture.inks, ratio);
  for (let index = picture.first; index < picture.end; index += 1) {
    const entry = picture.entries[index];
    if (entry?.kind !== 'server') continue;
    const y = index * picture.line - picture.scrolled;
    const gap = picture.line >= 20 ? 2 : 1;
    paintRow(context, picture, entry.id, { y: y + Math.floor(gap / 2), height: picture.line - gap }, x, hatch);
  }
  paintTime(context, picture, x);
  paintPinned(context, picture, x);
}

interface Place {
  y: number;
  height: number;
}

function paintRow(
  context: CanvasRenderingContext2D,
  picture: Picture,
  id: string,
  { y, height }: Place,
  x: (at: number) => number,
  hatch: CanvasPattern | string,
): void {
  const { span, width, which, top, ramp, inks } = picture;
  const row = picture.rowOf(id);
  if (!row) {
    context.fillStyle = inks.waiting;
    context.fillRect(0, y, width, height);
    return;
  }
  context.fillStyle = inks.hatchGround;
  context.fillRect(0, y, width, height);
  context.fillStyle = hatch;
  context.fillRect(0, y, width, height);
  const first = Math.max(0, placeOf(row, span.from));
  const end = Math.min(row[which].length, placeOf(row, span.to) + 1);
  const colours = row[which].map((value) => (value === null ? null : colourOf(ramp, value / row.scale, top)));
  for (const [from, to, colour] of runs(colours, first, end)) {
    if (colour === null) continue;
    // Whole pixels, so that no ground shines through between neighbours.
    const left = Math.max(0, Math.round(x(row.start + from * row.width)));
    const right = Math.min(width, Math.round(x(row.start + to * row.width)));
    context.fillStyle = colour;
    context.fillRect(left, y, Math.max(1, right - left), height);
  }
  context.fillStyle = inks.alert;
  for (const firing of picture.firingsOf(id)) {
    if (firing.to < span.from || firing.from > span.to) continue;
    const left = Math.max(0, x(firing.from));
    const right = Math.min(width, x(firing.to));
    context.fillRect(left, y + height - 2, Math.max(3, right - left), 2);
  }
}

function paintTime(context: CanvasRenderingContext2D, picture: Picture, x: (at: number) => number): void {
  const { height, inks, cursor } = picture;
  context.fillStyle = inks.grid;
  for (const tick of picture.ticks) context.fillRect(Math.round(x(tick)), 0, 1, height);
  if (cursor === null) return;
  context.fillStyle = inks.cursor;
  context.fillRect(Math.round(x(cursor)), 0, 1, height);
  const index = picture.entries.findIndex((entry) => entry.kind === 'server' && entry.id === picture.pointed);
  if (index < picture.first || index >= picture.end) return;
  context.strokeStyle = inks.cursor;
  context.lineWidth = 1;
  const y = index * picture.line - picture.scrolled;
  context.strokeRect(0.5, y + 0.5, picture.width - 1, picture.line - 1);
}

function paintPinned(context: CanvasRenderingContext2D, picture: Picture, x: (at: number) => number): void {
  const { pinned, inks, height, line } = picture;
  if (!pinned) return;
  const [left, right] = [Math.round(x(pinned.from)), Math.round(x(pinned.to))];
  context.fillStyle = inks.cursor;
  context.globalAlpha = 0.45;
  context.fillRect(left, 0, 1, height);
  context.fillRect(Math.max(left + 1, right - 1), 0, 1, height);
  context.globalAlpha = 1;
  const index = picture.entries.findIndex((entry) => entry.kind === 'server' && entry.id === pinned.id);
  if (index < picture.first || index >= picture.end) return;
  context.strokeStyle = inks.cursor;
  context.lineWidth = 2;
  const y = index * line - picture.scrolled;
  context.strokeRect(left - 2, y, Math.max(6, right - left + 4), line);
}

/** Thin lines from corner to corner. */
function hatching(context: CanvasRenderingContext2D, inks: Inks, ratio: number): CanvasPattern | string {
  const tile = document.createElement('canvas');
  tile.width = tile.height = Math.round(HATCH * ratio);
  const drawn = tile.getContext('2d');
  if (!drawn) return inks.hatchGround;
  drawn.scale(tile.width / HATCH, tile.height / HATCH);
  drawn.strokeStyle = inks.hatch;
  drawn.lineWidth = 1;
  drawn.beginPath();
  for (const offset of [-HATCH, 0, HATCH]) {
    drawn.moveTo(offset, HATCH);
    drawn.lineTo(offset + HATCH, 0);
  }
  drawn.stroke();
  const pattern = context.createPattern(tile, 'repeat');
  // The tile has the pixels of the screen already.
  pattern?.setTransform(new DOMMatrix().scale(1 / ratio));
  return pattern ?? inks.hatchGround;
}
