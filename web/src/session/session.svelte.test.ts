// @vitest-environment jsdom
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

type Answer = () => Response | Promise<Response>;

const never = () => new Promise<Response>(() => undefined);

beforeEach(() => {
  vi.resetModules();
  vi.useFakeTimers();
  // The sessions of these tests are no tabs of one browser.
  vi.stubGlobal('BroadcastChannel', undefined);
});

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

/** A token that lives so long. */
const tokenOf = (seconds: number, name: string) => `${name}.${btoa(JSON.stringify({ iat: 0, exp: seconds }))}.`;

/** Somebody who signed in an hour ago but for so many seconds, at a service with these answers. Their token lives an hour. */
async function signedIn(left: number, answers: Record<string, Answer>) {
  const token = tokenOf(3_600, 'first');
  const all: Record<string, Answer> = {
    login: () => Response.json({ access_token: token }),
    me: () => Response.json({ id: 'me', username: 'ada', second_factor: { totp: false, passkeys: 0 } }),
    ...answers,
  };
  const service = vi.fn(async (request: Request) => {
    const answer = all[request.url.split('/').at(-1) ?? ''];
    if (!answer) throw new TypeError(request.url);
    return answer();
  });
  vi.stubGlobal('fetch', service);
  const { session } = await import('./session.svelte');
  await session.signIn('ada', 'secret');
  await vi.advanceTimersByTimeAsync((3_600 - left) * 1_000);
  const asked = (what: string) => service.mock.calls.filter(([{ url }]) => url.endsWith(`/${what}`)).length;
  return { session, token, asked };
}

test('nobody waits for another token while the one that is there still works', async () => {
  const { session, token, asked } = await signedIn(90, { refresh: never });

  expect(await session.token()).toBe(token);
  expect(await session.token()).toBe(token);

  expect(asked('refresh')).toBe(1);
});

test('the next token is there for the next request, and is waited for where the old one is about to end', async () => {
  const lives = [150, 3_600];
  const { session, token, asked } = await signedIn(90, {
    refresh: () => Response.json({ access_token: tokenOf(lives.shift() ?? 0, `before-${lives.length}`) }),
  });

  expect(await session.token()).toBe(token);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await session.token()).toMatch(/^before-1/);
  await vi.advanceTimersByTimeAsync(140_000);

  expect(await session.token()).toMatch(/^before-0/);
  expect(asked('refresh')).toBe(2);
});

test('a refresh that fails in the background changes nothing while the token works', async () => {
  const { session, token, asked } = await signedIn(90, { refresh: () => Promise.reject(new TypeError('no network')) });

  expect(await session.token()).toBe(token);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await session.token()).toBe(token);

  await vi.advanceTimersByTimeAsync(1_000);
  expect(session.state).toBe('signed-in');
  // Twice, each time repeated once.
  expect(asked('refresh')).toBe(4);
});

test('a refresh whose answer got lost is repeated before the service takes it for a theft', async () => {
  const answers = [
    () => Promise.reject(new TypeError('lost')),
    () => Response.json({ access_token: tokenOf(1_800, 'new') }),
  ];
  const { session, asked } = await signedIn(5, { refresh: () => answers.shift()?.() ?? never() });

  expect(await session.token()).toMatch(/^new/);

  expect(session.state).toBe('signed-in');
  expect(asked('refresh')).toBe(2);
});

test.each([
  ['now', () => Response.json({ data: null, message: 'The browser has no cookie' })],
  ['in an older version', () => new Response(null, { status: 204 })],
])('where there is no cookie, as the service says it %s, nobody is signed in', async (_, answer) => {
  vi.stubGlobal('fetch', async () => answer());
  const { session } = await import('./session.svelte');

  for (const early of [Promise.resolve(answer()), null]) {
    window.early = { refresh: early, answers: new Map(), sockets: new Map() };
    await session.start();

    expect(session.state).toBe('signed-out');
    expect(session.ended).toBeNull();
    expect(await session.token()).toBeNull();
  }
});

test('a page whose early refresh gets no answer asks once more', async () => {
  window.early = { refresh: never(), answers: new Map(), sockets: new Map() };
  vi.stubGlobal('fetch', async ({ url }: Request) =>
    Response.json(url.endsWith('/me') ? { id: 'me', username: 'ada' } : { access_token: tokenOf(1_800, 'new') }),
  );
  const { session } = await import('./session.svelte');

  const starting = session.start();
  await vi.advanceTimersByTimeAsync(5_000);
  await starting;

  expect(session.state).toBe('signed-in');
});

test('a sign-out does not wait for a service that does not answer', async () => {
  const { session } = await signedIn(1_800, { logout: never });
  const left = session.signOut().catch((error: { code: string }) => error.code);

  await vi.advanceTimersByTimeAsync(9_000);

  expect(session.state).toBe('signed-out');
  expect(session.user).toBeNull();
  expect(session.ended).toBe('untold');
  expect(await left).toBe('unreachable');
});

test('a token that comes after the sign-out ends the session, and is kept by nobody', async () => {
  let give: (response: Response) => void = () => undefined;
  const { session, asked } = await signedIn(5, {
    refresh: () => new Promise((resolve) => (give = resolve)),
    logout: () => new Response(null, { status: 204 }),
  });
  void session.signOut().catch(() => undefined);
  await vi.advanceTimersByTimeAsync(9_000);
  expect(session.state).toBe('signed-out');
  expect(asked('logout')).toBe(0);

  give(Response.json({ access_token: tokenOf(3_600, 'late') }));
  await vi.advanceTimersByTimeAsync(0);

  expect(asked('logout')).toBe(1);
  expect(await session.token()).toBeNull();
});

test('a refresh from before a sign-out says nothing of who signs in next', async () => {
  let give: (response: Response) => void = () => undefined;
  const { session } = await signedIn(90, {
    refresh: () => new Promise((resolve) => (give = resolve)),
    logout: () => new Response(null, { status: 204 }),
  });
  await session.token();
  await session.signOut();
  await session.signIn('ada', 'secret');

  give(Response.json({ detail: 'ended', code: 'session_ended', status_code: 401 }, { status: 401 }));
  await vi.advanceTimersByTimeAsync(0);

  expect(session.state).toBe('signed-in');
});
