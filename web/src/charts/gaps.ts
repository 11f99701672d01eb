/** Points further apart than this many times their usual distance have a gap between them. */
export const GAP_FACTOR = 2.5;

/** The usual distance of points: the median of the last ones. `least` where there are too few to tell. */
export function usualDistance(times: ArrayLike<number>, least: number): number {
  const distances: number[] = [];
  for (let index = Math.max(1, times.length - 64); index < times.length; index += 1) {
    distances.push((times[index] ?? 0) - (times[index - 1] ?? 0));
  }
  distances.sort((a, b) => a - b);
  return Math.max(least, distances[(distances.length - 1) >> 1] ?? least);
}

/** The interval of agents by default, in seconds. Somebody who looks gets a sample a second: both may be in one chart. */
export const LEAST_PACE = 5;

/**
 * The distance that points may have without a gap, over all of them: it is that of the slower part where samples came faster
 * for a while. An outage now and then does not change it.
 */
export function paceOf(times: ArrayLike<number>, least: number): number {
  const distances: number[] = [];
  for (let index = Math.max(1, times.length - 256); index < times.length; index += 1) {
    distances.push((times[index] ?? 0) - (times[index - 1] ?? 0));
  }
  distances.sort((a, b) => a - b);
  return Math.max(least, distances[Math.floor((distances.length - 1) * 0.8)] ?? least);
}

/** A time without data. */
export interface Gap {
  from: number;
  to: number;
}

/** The times within `from` to `to` of which there is no data, when there is some at `times` (ascending). */
export function gapsWithin(times: readonly number[], from: number, to: number, pace: number): Gap[] {
  const found: Gap[] = [];
  const least = pace * GAP_FACTOR;
  let before = from;
  for (const time of times) {
    if (time > from && time - before > least) found.push({ from: Math.max(from, before), to: Math.min(to, time) });
    before = time;
    if (time >= to) return found;
  }
  // The newest sample may be on its way.
  if (to - Math.max(from, before) > least * 2) found.push({ from: Math.max(from, before), to });
  return found;
}

/** Whether a line breaks between two times. */
export function isGap(before: number, after: number, usual: number): boolean {
  return after - before > usual * GAP_FACTOR;
}

/** Where points must be put in that break the lines: before which places, and at which times. */
export function breaks(times: readonly number[], usual: number): { place: number; at: number }[] {
  const found: { place: number; at: number }[] = [];
  for (let place = 1; place < times.length; place += 1) {
    const before = times[place - 1];
    const after = times[place];
    if (before !== undefined && after !== undefined && isGap(before, after, usual)) {
      found.push({ place, at: before + usual });
    }
  }
  return found;
}

/** The place of the time that is nearest to one, unless it is further away than `within`; null then. */
export function nearest(times: ArrayLike<number>, at: number, within = Infinity): number | null {
  let low = 0;
  let high = times.length - 1;
  if (high < 0) return null;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] ?? 0) < at) low = middle + 1;
    else high = middle;
  }
  const after = Math.abs((times[low] ?? 0) - at);
  const before = low > 0 ? Math.abs((times[low - 1] ?? 0) - at) : Infinity;
  const place = before <= after ? low - 1 : low;
  return Math.min(before, after) <= within ? place : null;
}

/** The first place whose time is not before one. */
export function firstFrom(times: ArrayLike<number>, at: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] ?? 0) < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The points that stand alone between gaps: a line does not show them. */
export function lonely(values: ArrayLike<number | null | undefined>, from: number, to: number): number[] {
  const found: number[] = [];
  for (let place = from; place <= to; place += 1) {
    if (values[place] == null) continue;
    if (values[place - 1] == null && values[place + 1] == null) found.push(place);
  }
  return found;
}
