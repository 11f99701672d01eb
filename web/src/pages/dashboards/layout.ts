// Where the views of a dashboard stand: in rows of twelve columns, in their order. Pure.
import type { Layout, PanelOf } from '../explore/types';

export const COLUMNS = 12;
export const WIDTHS = [3, 4, 6, 8, 12] as const;
export const HEIGHTS = [1, 2, 3, 4] as const;
export const MOST_PANELS = 50;

export interface Placed {
  panel: PanelOf;
  x: number;
  y: number;
}

/** Where each stands: beside the last one where there is room, below all of its row otherwise. */
export function placed(panels: readonly PanelOf[]): { places: Placed[]; rows: number } {
  const places: Placed[] = [];
  let [x, y, tallest] = [0, 0, 0];
  for (const panel of panels) {
    if (x + panel.width > COLUMNS) {
      [x, y, tallest] = [0, y + tallest, 0];
    }
    places.push({ panel, x, y });
    x += panel.width;
    tallest = Math.max(tallest, panel.height);
  }
  return { places, rows: y + tallest };
}

/** Names that stay with the views while they are moved: a view may be there twice. */
export function keysOf(panels: readonly PanelOf[]): string[] {
  const counts = new Map<string, number>();
  return panels.map(({ view_id: id }) => {
    const count = (counts.get(id) ?? 0) + 1;
    counts.set(id, count);
    return `${id} ${count}`;
  });
}

/** With the view at one place at another. */
export function moved(panels: readonly PanelOf[], from: number, to: number): PanelOf[] {
  const next = [...panels];
  const [panel] = next.splice(from, 1);
  if (panel) next.splice(Math.max(0, Math.min(next.length, to)), 0, panel);
  return next;
}

/** With another width or height of the view at a place. */
export function resized(
  panels: readonly PanelOf[],
  place: number,
  size: { width?: number; height?: number },
): PanelOf[] {
  return panels.map((panel, index) => (index === place ? { ...panel, ...size } : panel));
}

/** The next width, or the one before. */
export function nextWidth(width: number, step: 1 | -1): number {
  const known = step > 0 ? WIDTHS.find((one) => one > width) : WIDTHS.filter((one) => one < width).at(-1);
  return known ?? width;
}

export function isSameLayout(one: Layout, other: Layout): boolean {
  const text = ({ panels, range }: Layout) =>
    JSON.stringify([range, panels.map(({ view_id, width, height }) => [view_id, width, height])]);
  return text(one) === text(other);
}
