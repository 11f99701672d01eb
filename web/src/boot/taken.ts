// The program's side of what was asked before it was here: each answer is taken once, soon.
import type { Early, EarlySocket } from './requests';

declare global {
  interface Window {
    early?: Early;
  }
}

/** An answer that is older than this, since the page was opened, is none of the present. */
const SOON_MS = 30_000;

/** The answer to the question whether somebody is signed in; null where it was not asked, or was taken. */
export function takeRefresh(now = performance.now()): Promise<Response> | null {
  const asked = window.early?.refresh ?? null;
  if (window.early) window.early.refresh = null;
  return now < SOON_MS ? asked : null;
}

/** The answer to a request; null where it was not asked for, or was taken, or did not come. */
export async function takeAnswer(request: Request, now = performance.now()): Promise<Response | null> {
  if (request.method !== 'GET' || now > SOON_MS) return null;
  const { origin, pathname, search } = new URL(request.url);
  const address = pathname + search;
  const asked = origin === location.origin ? window.early?.answers.get(address) : undefined;
  if (!asked) return null;
  window.early?.answers.delete(address);
  return asked.catch(() => null);
}

/** When the page was opened, on this browser's clock: nothing was asked before. */
export function openedAt(): number {
  return Date.now() - performance.now();
}

/** A socket that was opened early, and still is, or is about to be; null where there is none. */
export function takeSocket(path: string): EarlySocket | null {
  const found = window.early?.sockets.get(path);
  if (!found) return null;
  window.early?.sockets.delete(path);
  return found.socket.readyState <= WebSocket.OPEN ? found : null;
}
