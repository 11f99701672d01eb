// Tabs share the cookie with the refresh token: an answer that came late would put a spent one back into it. So one tab at
// a time asks for a new one.

/** How long a tab may hold up the others. */
export const TURN_MS = 30_000;

/** Does something when no other tab does. Where the browser has no locks (without HTTPS), at once. */
export async function inTurn<T>(work: (signal: AbortSignal) => Promise<T>, locks = locksOf(navigator)): Promise<T> {
  const timed = (): Promise<T> => work(AbortSignal.timeout(TURN_MS));
  // What the types leave out: a lock gives what its work gives, also when that is a promise.
  return locks ? ((await locks.request('session', timed)) as T) : timed();
}

function locksOf(from: Navigator): LockManager | undefined {
  return (from as { locks?: LockManager }).locks;
}
