// How many columns of tiles fill a rectangle, and how large their letters may be.

export type Detail = 'full' | 'brief' | 'least';

export interface Fit {
  columns: number;
  rows: number;
  detail: Detail;
  /** The size of letters in a tile, in pixels: everything in it is a multiple of that. */
  unit: number;
}

interface Design {
  detail: Detail;
  /** What a tile needs, in units. */
  width: number;
  height: number;
  /** Smaller letters are not read from afar: a tile then shows less. */
  least: number;
}

const designs: readonly Design[] = [
  { detail: 'full', width: 15, height: 8.4, least: 14 },
  { detail: 'brief', width: 11.5, height: 3.6, least: 12 },
  { detail: 'least', width: 9, height: 1.9, least: 0 },
];

/** How many letters of a name a tile has room for. */
export const ROOM: Record<Detail, number> = { full: 16, brief: 12, least: 9 };

/** Letters need not be larger than this. */
const MOST_UNIT = 44;

/** Fits `count` tiles into a rectangle, with `gap` pixels between them: as much as can be read, as large as possible. */
export function fit(count: number, width: number, height: number, gap: number): Fit {
  const tiles = Math.max(1, count);
  let found: Fit = { columns: 1, rows: tiles, detail: 'least', unit: 0 };
  for (const design of designs) {
    found = largest(design, tiles, width, height, gap);
    if (found.unit >= design.least) break;
  }
  return found;
}

function largest(design: Design, tiles: number, width: number, height: number, gap: number): Fit {
  let best: Fit = { columns: 1, rows: tiles, detail: design.detail, unit: -1 };
  for (let columns = 1; columns <= tiles; columns += 1) {
    const rows = Math.ceil(tiles / columns);
    // A last column that stays empty only takes room.
    if (rows * (columns - 1) >= tiles && columns > 1 && Math.ceil(tiles / (columns - 1)) === rows) continue;
    const tile = { width: (width - gap * (columns - 1)) / columns, height: (height - gap * (rows - 1)) / rows };
    const unit = Math.max(0, Math.min(MOST_UNIT, tile.width / design.width, tile.height / design.height));
    if (unit > best.unit) best = { columns, rows, detail: design.detail, unit };
  }
  return best;
}
