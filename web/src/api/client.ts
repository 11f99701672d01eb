// Requests to the service: typed by its document, with the access token, which is renewed when it has expired.
import { clock } from '../live/clock.svelte';
import createClient, { type Middleware } from 'openapi-fetch';
import type { paths } from '../../generated/api';
import { openedAt, takeAnswer } from '../boot/taken';
import { Failure } from './failure';

/** Who has the tokens. Set once by the session, so that this module depends on nothing. */
export interface TokenSource {
  /** A token that works for a while; null when nobody is signed in. */
  token(): Promise<string | null>;
  /** A token was refused: gives another one, or null when the sign-in has ended. */
  refused(token: string): Promise<string | null>;
}

let tokens: TokenSource = { token: async () => null, refused: async () => null };

export function useTokens(source: TokenSource): void {
  tokens = source;
}

/** What a session has to prove before the service does something. */
export type ProofCode = 'step_up_required' | 'second_factor_required';

/** Gets the proof from the person at this page; false where they do not give it. */
let prove: (code: ProofCode) => Promise<boolean> = async () => false;

export function useProofs(source: typeof prove): void {
  prove = source;
}

/**
 * A connection that is gone without a word lets a request wait for minutes: so long may an answer take to begin. Its body has no
 * limit: in a stream of the page's own, which would need one, Firefox reports errors when the page is left, and Chromium's tools
 * lose what was answered.
 */
const READ_MS = 60_000;
/** What is done may take longer: a command is answered within 90 seconds, and a container has up to five minutes to stop. */
const ACT_MS = 120_000;
const STOP_MS = 330_000;

/** Requests that are made without a token. */
const OPEN = new Set([
  '/api/v1/auth/login',
  '/api/v1/auth/register',
  '/api/v1/auth/refresh',
  '/api/v1/auth/passkeys/challenge',
  '/api/v1/auth/passkeys/login',
  '/api/v1/service',
  '/install',
]);

const authenticate: Middleware = {
  async onRequest({ request, schemaPath }) {
    if (OPEN.has(schemaPath)) return undefined;
    const token = await tokens.token();
    if (token) request.headers.set('Authorization', `Bearer ${token}`);
    return request;
  },
};

/** One more time once the session has proved what the service asks for. */
async function send(request: Request): Promise<Response> {
  const again = request.clone();
  const response = await sendOnce(request);
  const code = response.status === 403 ? await proofCode(response) : null;
  return code && (await prove(code)) ? sendOnce(again) : response;
}

async function proofCode(response: Response): Promise<ProofCode | null> {
  const body: unknown = await response
    .clone()
    .json()
    .catch(() => null);
  const code = typeof body === 'object' && body !== null && 'code' in body ? body.code : null;
  return code === 'step_up_required' || code === 'second_factor_required' ? code : null;
}

/** One more time with a new token: the old one expired, or ended, between two looks at the clock. */
async function sendOnce(request: Request): Promise<Response> {
  const again = request.clone();
  const response = await reach(request);
  const used = request.headers.get('Authorization')?.slice('Bearer '.length);
  if (response.status !== 401 || !used) return response;
  const token = await tokens.refused(used);
  if (!token) return response;
  again.headers.set('Authorization', `Bearer ${token}`);
  return reach(again);
}

async function reach(request: Request): Promise<Response> {
  const limit = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    const giveUp = () => {
      reject(Failure.unreachable());
      limit.abort();
    };
    const actMs = request.url.includes('/api/v1/docker/') ? STOP_MS : ACT_MS;
    timer = setTimeout(giveUp, request.method === 'GET' ? READ_MS : actMs);
  });
  try {
    return await Promise.race([ask(request, limit.signal), late]);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw Failure.unreachable();
  } finally {
    clearTimeout(timer);
  }
}

async function ask(request: Request, limit: AbortSignal): Promise<Response> {
  const askedAt = Date.now();
  const early = await takeAnswer(request);
  const response = early ?? (await fetch(request, { signal: AbortSignal.any([request.signal, limit]) }));
  // What a cache kept tells another time.
  if (!response.headers.has('age')) clock.heard(response.headers.get('date'), early ? openedAt() : askedAt);
  return response;
}

export const api = createClient<paths>({ baseUrl: location.origin, fetch: send });
api.use(authenticate);

/** What the client of the API gives. */
export interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The body of an answer that succeeded; throws a [`Failure`] otherwise. */
export async function take<T>(request: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await request;
  if (!response.ok) throw Failure.of(response, error);
  return data as T;
}

/** A page of a list. */
export interface Page<T> {
  items: T[];
  total: number;
}

/** A list with how many there are in all. */
export async function takePage<T>(request: Promise<Answer<T[]>>): Promise<Page<T>> {
  const { data, error, response } = await request;
  if (!response.ok) throw Failure.of(response, error);
  const items = data ?? [];
  return { items, total: Number(response.headers.get('x-total-count') ?? items.length) };
}

/** As many as a list gives at once. */
const PAGE = 500;
/** A browser asks for six files at a time, by HTTP/1.1: something is left for others. */
const AT_ONCE = 4;

/** Every page of a list, for what is small enough to be shown whole. The first says how many there are; a few come at a time. */
export async function takeAll<T>(page: (offset: number, limit: number) => Promise<Page<T>>): Promise<T[]> {
  const first = await page(0, PAGE);
  const step = first.items.length;
  if (step === 0 || step >= first.total) return first.items;
  const pages: T[][] = Array.from({ length: Math.ceil(first.total / step) }, () => []);
  pages[0] = first.items;
  let next = 1;
  const take = async () => {
    while (next < pages.length) {
      const index = next;
      next += 1;
      pages[index] = (await page(index * step, step)).items;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, take));
  return pages.flat();
}

/**
 * Gets the proof that a socket was refused for: browsers do not say why one was. `unasked` where it was refused for another
 * reason.
 */
export async function proofFor(path: string): Promise<'given' | 'refused' | 'unasked'> {
  const token = await tokens.token();
  const headers: HeadersInit = token ? { Authorization: `Bearer ${token}` } : {};
  const response = await sendOnce(new Request(new URL(`/api/v1${path}`, location.origin), { headers }));
  const code = response.status === 403 ? await proofCode(response) : null;
  if (!code) return 'unasked';
  return (await prove(code)) ? 'given' : 'refused';
}
