import type { Span } from '../charts/ranges';

/** Lines so near to a time belong to it. */
const NEAR_MS = 1_000;

type Time = number | null;

/** The time within a span, both in seconds; null outside of it, where the nearest line would be another time's. */
export function timeWithin(at: number, { from, to }: Span): number | null {
  return at >= from && at <= to ? at : null;
}

/** Which lines belong to a time: those of that second, or else the last ones before it. Times are in milliseconds. */
export function linesAt(times: readonly Time[], seconds: number | null): { from: number; to: number } {
  const none = { from: 0, to: 0 };
  if (seconds === null) return none;
  const at = seconds * 1000;
  const near = spanOf(times, (time) => Math.abs(time - at) <= NEAR_MS);
  if (near) return near;
  const before = spanOf(times, (time) => time <= at);
  const last = before && times[before.to - 1];
  return spanOf(times, (time) => time === last) ?? none;
}

/** From the first to behind the last that fits. */
function spanOf(times: readonly Time[], fits: (time: number) => boolean): { from: number; to: number } | null {
  const places = times.flatMap((time, place) => (time !== null && fits(time) ? [place] : []));
  const [from, last] = [places[0], places.at(-1)];
  return from === undefined || last === undefined ? null : { from, to: last + 1 };
}
