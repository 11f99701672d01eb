/** Bounds of the wait before a socket is opened again. */
const FIRST_MS = 500;
const LONGEST_MS = 30_000;

/** A service that restarts says so, and is back soon: its dashboards come back spread over so long. */
const RESTART_MS = 3_000;

/** Tells the service that this page gives a connection up and may come back for what was open on it. */
export const DETACHED = 4000;
export const RESTARTING = 1012;
export const UNAUTHORIZED = 4401;
/** The right to what the socket shows was taken away. */
export const FORBIDDEN = 4403;
/** The server was deleted, or is not shared any more. */
export const SERVER_DELETED = 4404;

/**
 * How long to wait before the attempt after `failures` failed ones: full jitter, so that all the pages that lost the
 * service at the same time do not come back at the same time. `chance` lies in [0, 1).
 */
export function delay(failures: number, code: number, chance: number): number {
  if (code === RESTARTING && failures <= 1) return FIRST_MS + chance * RESTART_MS;
  return FIRST_MS / 2 + chance * Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(failures, 16));
}
