// Where the parts of a chart lie on the page, in CSS pixels: what stands over the canvas agrees with what is drawn on it.
import type { Span } from './ranges';

/** The axis of values. The same for every chart, so that their times stand below one another. */
export const PLOT_LEFT = 62;
export const PLOT_RIGHT = 10;
export const PLOT_TOP = 10;
/** The axis of times. */
export const AXIS_HEIGHT = 28;

/** How far from the left edge of a chart a time is. */
export function xOf(time: number, span: Span, width: number): number {
  return PLOT_LEFT + ((time - span.from) / (span.to - span.from)) * plotWidth(width);
}

export function plotWidth(width: number): number {
  return Math.max(1, width - PLOT_LEFT - PLOT_RIGHT);
}
