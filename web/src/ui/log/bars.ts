// The bars of lines over time, as paths: one path for each colour, whatever number of bars there is. Pure.
import { LEVELS } from './levels';
import type { Histogram } from './lineLevels.svelte';

export type Tone = 'bad' | 'warn' | 'plain';

/** From below: what is bad stands where the eye looks for it, on the line. */
const TONES: readonly Tone[] = ['bad', 'warn', 'plain'];

/** What is worse than a warning is bad, everything below one is as good as the other. */
export function toneOf(index: number): Tone {
  const level = LEVELS[index];
  return level === 'fatal' || level === 'error' ? 'bad' : level === 'warn' ? 'warn' : 'plain';
}

export interface Totals {
  all: number;
  bad: number;
}

/** How many lines a bar stands for. */
export function totalsOf(histogram: Histogram, index: number): Totals {
  const totals = { all: 0, bad: 0 };
  for (const [level, bar] of histogram.bars.entries()) {
    const count = bar[index] ?? 0;
    totals.all += count;
    if (toneOf(level) === 'bad') totals.bad += count;
  }
  return totals;
}

/** Paths for a box of this size. A bar that stands for one line can be seen, whatever the others are. */
export function pathsOf(histogram: Histogram, width: number, height: number): Record<Tone, string> {
  const count = histogram.bars[0]?.length ?? 0;
  const paths: Record<Tone, string> = { bad: '', warn: '', plain: '' };
  if (count === 0) return paths;
  const heights = { bad: new Float64Array(count), warn: new Float64Array(count), plain: new Float64Array(count) };
  for (const [level, bar] of histogram.bars.entries()) {
    const own = heights[toneOf(level)];
    for (let index = 0; index < count; index += 1) own[index] = (own[index] ?? 0) + (bar[index] ?? 0);
  }
  let most = 1;
  for (let index = 0; index < count; index += 1)
    most = Math.max(
      most,
      TONES.reduce((sum, tone) => sum + (heights[tone][index] ?? 0), 0),
    );
  const room = width / count;
  const gap = room > 4 ? 1 : 0;
  for (let index = 0; index < count; index += 1) {
    let y = height;
    for (const tone of TONES) {
      const value = heights[tone][index] ?? 0;
      if (value === 0) continue;
      const high = Math.min(y, Math.max(2, (value / most) * height));
      paths[tone] += `M${round(index * room)} ${round(y)}v${round(-high)}h${round(room - gap)}v${round(high)}z`;
      y -= high;
    }
  }
  return paths;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
