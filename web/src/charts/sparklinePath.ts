// A course as paths of an SVG image of BINS - 1 by 100 units, whatever its size on the screen.
import type { Stretch } from './sparklineCourse';

const HEIGHT = 100;
/** So that the line is not cut where it runs along the edge. */
const EDGE = 2;

export interface Paths {
  line: string;
  /** What lies below the line. */
  area: string;
}

/** `most` stands at the top. */
export function pathsOf(stretches: readonly Stretch[], most: number): Paths {
  const y = (value: number) =>
    Number((HEIGHT - EDGE - (Math.max(0, Math.min(most, value)) / most) * (HEIGHT - 2 * EDGE)).toFixed(1));
  let line = '';
  let area = '';
  for (const stretch of stretches) {
    const [first] = stretch;
    const last = stretch.at(-1);
    if (!first || !last) continue;
    const points = stretch.map(([place, value]) => `${place} ${y(value)}`);
    // A lone value is a dot: a line of no length with round ends.
    line += `M${points.join('L')}${first === last ? 'h0' : ''}`;
    area += `M${first[0]} ${HEIGHT}L${points.join('L')}V${HEIGHT}Z`;
  }
  return { line, area };
}
