// @vitest-environment jsdom
import { afterEach, describe, expect, it, vi } from 'vitest';
import { clock } from '../live/clock.svelte';
import { api, take, takeAll, type Page } from './client';
import { Failure } from './failure';

afterEach(() => {
  delete window.early;
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** A network on which nothing comes back. */
const silence = () => vi.fn((_: Request, init: RequestInit) => lost(init.signal));

/** What ends with its signal alone. */
function lost(signal: AbortSignal | null | undefined): Promise<Response> {
  const ended = () => new DOMException('nobody waits', 'AbortError');
  return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(ended())));
}

/** What became of a request, so far. */
function fate(request: Promise<unknown>): { code: string } {
  const seen = { code: 'waiting' };
  request.catch((error) => (seen.code = error instanceof Failure ? error.code : (error as Error).name));
  return seen;
}

describe('an answer that does not come', () => {
  it('is given up after a minute, and later where something is done', async () => {
    vi.useFakeTimers();
    const fetched = silence();
    vi.stubGlobal('fetch', fetched);
    const id = { params: { path: { id: '7' } } };
    const read = fate(take(api.GET('/api/v1/servers/{id}', id)));
    const done = fate(take(api.DELETE('/api/v1/servers/{id}', id)));
    const path = { server_id: '7', container_id: 'shop' };
    const stopped = fate(
      take(api.POST('/api/v1/docker/{server_id}/containers/{container_id}/stop', { params: { path } })),
    );

    await vi.advanceTimersByTimeAsync(59_000);
    expect(read.code).toBe('waiting');
    await vi.advanceTimersByTimeAsync(2_000);
    expect(read.code).toBe('unreachable');
    expect(fetched.mock.calls.map(([, { signal }]) => signal?.aborted)).toEqual([true, false, false]);

    await vi.advanceTimersByTimeAsync(50_000);
    expect(done.code).toBe('waiting');
    await vi.advanceTimersByTimeAsync(10_000);
    expect(done.code).toBe('unreachable');
    // A container has up to five minutes to stop.
    await vi.advanceTimersByTimeAsync(190_000);
    expect(stopped.code).toBe('waiting');
    await vi.advanceTimersByTimeAsync(30_000);
    expect(stopped.code).toBe('unreachable');
  });

  it('is given up too where it was asked for early', async () => {
    vi.useFakeTimers();
    const answers = new Map([['/api/v1/auth/me', new Promise<Response>(() => undefined)]]);
    window.early = { refresh: null, answers, sockets: new Map() };
    const read = fate(take(api.GET('/api/v1/auth/me')));

    await vi.advanceTimersByTimeAsync(61_000);

    expect(read.code).toBe('unreachable');
  });

  it('ends as before where nobody waits for it any more', async () => {
    vi.stubGlobal('fetch', silence());
    const leaving = new AbortController();
    const read = fate(take(api.GET('/api/v1/auth/me', { signal: leaving.signal })));
    await new Promise((resolve) => setTimeout(resolve));

    leaving.abort();

    await vi.waitFor(() => expect(read.code).toBe('AbortError'));
  });

  it('has no limit any more once it has begun', async () => {
    vi.useFakeTimers();
    const signals: (AbortSignal | null | undefined)[] = [];
    vi.stubGlobal('fetch', async (_: Request, init: RequestInit) => {
      signals.push(init.signal);
      return Response.json({ id: 'me' });
    });

    expect(await take(api.GET('/api/v1/auth/me'))).toEqual({ id: 'me' });
    await vi.advanceTimersByTimeAsync(400_000);

    expect(signals.map((signal) => signal?.aborted)).toEqual([false]);
  });
});

describe("the service's time", () => {
  it('is not taken from an answer that waited for the page, or was slow', async () => {
    vi.useFakeTimers();
    const answer = (ageMs: number) =>
      Response.json({}, { headers: { date: new Date(Date.now() - ageMs).toUTCString() } });
    const answers = new Map([['/api/v1/auth/me', Promise.resolve(answer(0))]]);
    window.early = { refresh: null, answers, sockets: new Map() };
    await vi.advanceTimersByTimeAsync(20_000);
    vi.spyOn(performance, 'now').mockReturnValue(21_000);

    await take(api.GET('/api/v1/auth/me'));
    expect(Math.abs(clock.present() - Date.now())).toBeLessThan(50);

    vi.stubGlobal('fetch', () => new Promise((resolve) => setTimeout(() => resolve(answer(8_000)), 10_000)));
    const slow = take(api.GET('/api/v1/auth/me'));
    await vi.advanceTimersByTimeAsync(10_000);
    await slow;
    expect(Math.abs(clock.present() - Date.now())).toBeLessThan(50);
  });
});

/** A list of so many, of which at most `most` come at a time. */
function listOf(total: number, most = 500) {
  const asked: number[] = [];
  let open = 0;
  let peak = 0;
  const page = async (offset: number, limit: number): Promise<Page<number>> => {
    asked.push(offset);
    open += 1;
    peak = Math.max(peak, open);
    // The later ones come first.
    await new Promise((done) => setTimeout(done, 20 - (offset / total) * 20));
    open -= 1;
    const count = Math.max(0, Math.min(limit, most, total - offset));
    return { items: Array.from({ length: count }, (_, index) => offset + index), total };
  };
  return { page, asked, peak: () => peak };
}

describe('a whole list', () => {
  it('comes in its order, a few pages at a time once the first says how many there are', async () => {
    const list = listOf(10_000);

    const all = await takeAll(list.page);

    expect(all).toEqual(Array.from({ length: 10_000 }, (_, index) => index));
    expect(list.asked[0]).toBe(0);
    expect(list.asked.length).toBe(20);
    expect(list.peak()).toBe(4);
  });

  it('is one page where that has all, and none where there is nothing', async () => {
    for (const total of [0, 1, 500]) {
      const list = listOf(total);
      expect((await takeAll(list.page)).length).toBe(total);
      expect(list.asked).toEqual([0]);
    }
  });

  it('is whole where pages are smaller than asked for', async () => {
    const list = listOf(250, 100);

    expect(await takeAll(list.page)).toEqual(Array.from({ length: 250 }, (_, index) => index));
  });
});
