// @vitest-environment jsdom
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ask, firstOf, socketOf, USUAL_SECONDS } from './requests';
import { takeAnswer, takeRefresh } from './taken';
import { USUAL } from '../charts/ranges';
import { namesFrom } from '../pages/server/overview/names';

const pair = { access_token: 'abc', refresh_token: '', token_type: 'bearer' };

/** A service that answers by path. */
function serving(answers: Record<string, () => Response>) {
  return vi.fn(async (address: string, init?: RequestInit) => {
    const answer = answers[address];
    if (!answer) throw new TypeError(`nothing at ${address}: ${init?.method}`);
    return answer();
  });
}

const asked = (service: ReturnType<typeof serving>, path: string) =>
  ask(
    { pathname: path, search: '' },
    service as unknown as typeof fetch,
    undefined,
    () => new EventTarget() as WebSocket,
  );

beforeEach(() => delete window.early);
afterEach(() => delete window.early);

test('a page asks for what it shows first', () => {
  expect(firstOf('/')).toEqual(['/api/v1/servers?limit=500&offset=0']);
  expect(firstOf('/servers/7/logs')).toEqual(['/api/v1/servers/7']);
  const now = Date.parse('2026-03-01T10:20:59.900Z');
  expect(firstOf('/servers/7', '', now)).toEqual([
    '/api/v1/servers/7',
    '/api/v1/metrics/7/names?start=2026-03-01T10%3A05%3A00.000Z',
  ]);
  // Another range has other series.
  expect(firstOf('/servers/7', '?range=7d', now)).toEqual(['/api/v1/servers/7']);
  expect(firstOf('/servers/new')).toEqual([]);
  // Whether there is such a server is not known yet.
  expect(socketOf('/servers/7')).toBeNull();
  expect(firstOf('/alerts')).toEqual([]);
});

test('the names of series are asked for at the address that the charts of a server ask for', () => {
  const now = Date.parse('2026-03-01T10:20:57.100Z');

  const names = firstOf('/servers/7', '', now).at(-1);

  expect(USUAL).toEqual({ kind: 'live', seconds: USUAL_SECONDS });
  // The program is here some seconds later.
  const query = new URLSearchParams({ start: namesFrom((now + 2_500) / 1000 - USUAL_SECONDS) });
  expect(names).toBe(`/api/v1/metrics/7/names?${query}`);
});

test('what was asked early is taken once', async () => {
  const service = serving({
    '/api/v1/auth/refresh': () => Response.json(pair),
    '/api/v1/auth/me': () => Response.json({ id: 'me' }),
    '/api/v1/servers/7': () => Response.json({ id: '7' }),
  });
  window.early = asked(service, '/servers/7/logs');

  const refreshed = await takeRefresh();
  const me = await takeAnswer(new Request(`${location.origin}/api/v1/auth/me`));

  expect(await refreshed?.json()).toEqual(pair);
  expect(await me?.json()).toEqual({ id: 'me' });
  expect(takeRefresh()).toBeNull();
  expect(await takeAnswer(new Request(`${location.origin}/api/v1/auth/me`))).toBeNull();
  expect(await takeAnswer(new Request(`${location.origin}/api/v1/servers/8`))).toBeNull();
  expect(service.mock.calls.map(([address, init]) => [address, init?.headers])).toEqual([
    ['/api/v1/auth/refresh', { 'X-Refresh-Cookie': 'if-any' }],
    ['/api/v1/auth/me', { Authorization: 'Bearer abc' }],
    ['/api/v1/servers/7', { Authorization: 'Bearer abc' }],
  ]);
});

test.each([
  ['now', () => Response.json({ data: null, message: 'The browser has no cookie' })],
  ['in an older version', () => new Response(null, { status: 204 })],
])('where nobody is signed in, as the service says it %s, nothing else is asked', async (_, answer) => {
  const service = serving({ '/api/v1/auth/refresh': answer });
  window.early = asked(service, '/');

  expect((await takeRefresh())?.ok).toBe(true);
  expect(await takeAnswer(new Request(`${location.origin}/api/v1/auth/me`))).toBeNull();
  expect(service).toHaveBeenCalledTimes(1);
});

test('a service that does not answer is asked again', async () => {
  window.early = asked(serving({}), '/');

  await expect(takeRefresh()).rejects.toThrow(TypeError);
  expect(await takeAnswer(new Request(`${location.origin}/api/v1/auth/me`))).toBeNull();
});

test('what was asked for long ago, or is to be changed, is asked for now', async () => {
  window.early = asked(serving({ '/api/v1/auth/refresh': () => Response.json(pair) }), '/alerts');

  expect(await takeAnswer(new Request(`${location.origin}/api/v1/auth/me`), 31_000)).toBeNull();
  expect(await takeAnswer(new Request(`${location.origin}/api/v1/auth/me`, { method: 'PUT' }))).toBeNull();
  expect(takeRefresh(31_000)).toBeNull();
});
