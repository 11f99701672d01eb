const FAMILY = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

/** What is written on a canvas, in pixels of the screen at this scale. */
export function fontAt(scale: number): string {
  return `${11 * scale}px ${FAMILY}`;
}
