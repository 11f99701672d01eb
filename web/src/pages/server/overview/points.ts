// How many points of a history are asked for. Pure.

/** Up to so many seconds samples are read as they are, a second apart where somebody looked. */
const WHOLE_SECONDS = 900;
const MOST = 900;
const LEAST = 240;

/** For a span on a screen so wide: a chart has one for every other pixel at most, and none is wider than the screen. */
export function pointsFor(seconds: number, screenWidth: number): number {
  if (seconds <= WHOLE_SECONDS) return MOST;
  return Math.min(MOST, Math.max(LEAST, Math.round(screenWidth / 2)));
}
