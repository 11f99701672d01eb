export type Tone = 'ok' | 'warn' | 'bad' | 'idle' | 'accent';

/** The colours of a chart, as a canvas takes them. */
export interface Palette {
  text: string;
  grid: string;
  surface: string;
  cursor: string;
  series: Map<string, string>;
  tones: Record<Tone, string>;
}

/** The colours of lines, in the order of the legend. */
export const SERIES = ['--series-1', '--series-2', '--series-3', '--series-4', '--series-5', '--series-6'];

export function seriesColour(place: number): string {
  return SERIES[place % SERIES.length] ?? '--series-1';
}

/** The same with less of it: `rgb(47 95 222 / 15%)`. */
export function faded(rgb: string, share: number): string {
  const parts = rgb.match(/[\d.]+/g)?.slice(0, 3) ?? ['128', '128', '128'];
  return `rgb(${parts.join(' ')} / ${Math.round(share * 100)}%)`;
}
