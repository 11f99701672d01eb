// The bar of a server's last hours: its parts as paths of an image, and as words.

export type Beat = 'online' | 'partly' | 'offline' | 'unknown';

export interface Outage {
  start: string;
  end: string;
  ongoing: boolean;
}

/** The last hours of a server, as `GET /servers/availability` tells them. */
export interface Bar {
  start: string;
  beat_seconds: number;
  beats: Beat[];
  uptime_percent?: number | null;
  outage_count: number;
  outages: Outage[];
}

/** How high a part is, of 10: the states can be told apart without their colours. */
const HEIGHTS: Record<Beat, number> = { online: 10, partly: 7, offline: 10, unknown: 3 };

/** How much of its width a part leaves free on either side. */
const MARGIN = 0.12;

/** One path for each state, on an image as wide as there are parts and 10 high. */
export function beatPaths(beats: readonly Beat[]): Partial<Record<Beat, string>> {
  const paths: Partial<Record<Beat, string>> = {};
  for (const [index, beat] of beats.entries()) {
    const height = HEIGHTS[beat];
    const width = 1 - 2 * MARGIN;
    paths[beat] = `${paths[beat] ?? ''}M${(index + MARGIN).toFixed(2)} 10v-${height}h${width.toFixed(2)}v${height}z`;
  }
  return paths;
}

/** A part of a bar. */
export interface Part {
  /** In milliseconds. */
  start: number;
  end: number;
  beat: Beat;
  /** The outages in it, cut to it. None where there were more than are known. */
  outages: { start: number; end: number; isOngoing: boolean }[];
}

/** The part that lies at a share of the width, from 0 to 1. */
export function partAt(bar: Bar, share: number): Part | null {
  const index = Math.min(bar.beats.length - 1, Math.max(0, Math.floor(share * bar.beats.length)));
  const beat = bar.beats[index];
  if (!beat) return null;
  const start = Date.parse(bar.start) + index * bar.beat_seconds * 1000;
  const end = start + bar.beat_seconds * 1000;
  const outages = bar.outages
    .map((outage) => ({
      start: Math.max(start, Date.parse(outage.start)),
      end: Math.min(end, Date.parse(outage.end)),
      isOngoing: outage.ongoing && Date.parse(outage.end) <= end,
    }))
    .filter((outage) => outage.start < outage.end);
  return { start, end, beat, outages };
}
