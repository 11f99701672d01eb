import type { Span } from '../../charts/ranges';

/** Until there is so much, the line grows into the chart; then it fills it, and the chart shows more and more. In seconds. */
const LEAST = 20;
const MOST = 900;

/** What the charts of a server that was just added show: all there is of it, up to now. */
export function spanSince(first: number | undefined, now: number): Span {
  const from = Math.max(first ?? now, now - MOST);
  return { from, to: Math.max(now, from + LEAST) };
}
