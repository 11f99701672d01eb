// What is asked of the service before the program of the page is here: on a slow line its files take longer than the answers.
// The boot script has this module for itself: nothing here may be imported by the program, but its types.

/** A socket that was opened early, and what has come over it since. */
export interface EarlySocket {
  socket: WebSocket;
  messages: string[];
}

/** What was asked, and has not been taken yet. */
export interface Early {
  /** Whether somebody is signed in. */
  refresh: Promise<Response> | null;
  /** Other answers, by their address. */
  answers: Map<string, Promise<Response>>;
  /** Sockets, by their path. */
  sockets: Map<string, EarlySocket>;
}

/** The first page of a list, as `takeAll` asks for it. */
const ALL = 'limit=500&offset=0';
/** As long as a tab may hold up the others: src/session/turn.ts. */
const PATIENCE_MS = 30_000;

/** The range of the charts of a server whose address names none: `USUAL` in src/charts/ranges.ts. */
export const USUAL_SECONDS = 15 * 60;
const MINUTE_MS = 60_000;

const SERVER = /^\/servers\/(?!new$)([^/]+)/;

/** From when on the names of series are asked for: `namesFrom` in src/pages/server/overview/names.ts. */
function namesFrom(fromMs: number): string {
  return new Date(Math.floor(fromMs / MINUTE_MS) * MINUTE_MS).toISOString();
}

/** What a page shows first of all, to anyone who is signed in. */
export function firstOf(path: string, search = '', now = Date.now()): string[] {
  const server = SERVER.exec(path)?.[1];
  if (server) {
    const first = [`/api/v1/servers/${server}`];
    if (path !== `/servers/${server}` || search) return first;
    const start = encodeURIComponent(namesFrom(now - USUAL_SECONDS * 1000));
    return [...first, `/api/v1/metrics/${server}/names?start=${start}`];
  }
  return ['/', '/servers', '/wall'].includes(path) ? [`/api/v1/servers?${ALL}`] : [];
}

/** The socket over which the first numbers of a page come; null where it does without. */
export function socketOf(path: string): string | null {
  return ['/', '/servers', '/wall'].includes(path) ? '/ws/fleet' : null;
}

/** Asks for a token, and with it for what the page at a path shows first. */
export function ask(
  { pathname: path, search }: Pick<Location, 'pathname' | 'search'>,
  get: typeof fetch,
  locks: LockManager | undefined,
  open: (path: string, token: string) => WebSocket,
): Early {
  const sockets = new Map<string, EarlySocket>();
  const answers = new Map<string, Promise<Response>>();
  const refresh = () =>
    get('/api/v1/auth/refresh', {
      method: 'POST',
      headers: { 'X-Refresh-Cookie': 'if-any' },
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
  // Tabs share the cookie, so they take turns: src/session/turn.ts.
  // What the types leave out: a lock gives what its work gives, also when that is a promise.
  const refreshed = locks ? (locks.request('session', refresh) as unknown as Promise<Response>) : refresh();
  const token = refreshed.then(async (response) => {
    if (response.status !== 200) return null;
    // Without a cookie there is no token in it.
    return ((await response.clone().json()) as { access_token?: string }).access_token ?? null;
  });
  for (const address of ['/api/v1/auth/me', ...firstOf(path, search)]) {
    const answer = token.then((bearer) => {
      if (bearer === null) throw new TypeError('nobody is signed in');
      return get(address, { headers: { Authorization: `Bearer ${bearer}` } });
    });
    // Who takes it handles the error; nobody may.
    answer.catch(() => undefined);
    answers.set(address, answer);
  }
  refreshed.catch(() => undefined);
  const live = socketOf(path);
  if (live) token.then((bearer) => bearer !== null && listen(live, open(live, bearer), sockets)).catch(() => undefined);
  return { refresh: refreshed, answers, sockets };
}

/** Keeps what comes until the program takes the socket. One that nobody takes is closed. */
function listen(path: string, socket: WebSocket, sockets: Map<string, EarlySocket>): void {
  const messages: string[] = [];
  socket.onmessage = (event: MessageEvent<string>) => messages.push(event.data);
  sockets.set(path, { socket, messages });
  setTimeout(() => sockets.delete(path) && socket.close(), PATIENCE_MS);
}
