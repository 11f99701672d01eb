// @vitest-environment jsdom
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { api } from '../api/client';
import { fleet } from './fleet.svelte';
import { live } from './socket.svelte';

type Watcher = Parameters<typeof live.watch>[1];

beforeEach(() => void vi.useFakeTimers());

afterEach(() => {
  vi.restoreAllMocks();
  fleet.reset();
  vi.useRealTimers();
});

/** A fleet that is watched. `answer` ends the oldest request for the list; `tell` sends a message with readings of servers. */
function watched() {
  const waiting: ((ids: string[]) => void)[] = [];
  let lists = 0;
  vi.spyOn(api, 'GET').mockImplementation(((path: string) => {
    if (path === '/api/v1/servers') lists++;
    else return Promise.resolve({ data: {}, response: new Response() });
    return new Promise((resolve) =>
      waiting.push((ids) =>
        resolve({
          data: ids.map((id) => ({ id, name: id, tags: [], status: 'online' })),
          response: new Response(null, { headers: { 'X-Total-Count': String(ids.length) } }),
        }),
      ),
    );
  }) as never);
  let watcher: Watcher | undefined;
  vi.spyOn(live, 'watch').mockImplementation((_, given) => {
    watcher = given;
    return { socket: {}, stop: () => undefined } as unknown as ReturnType<typeof live.watch>;
  });
  const stop = fleet.watch();
  const answer = async (...ids: string[]) => {
    await vi.advanceTimersByTimeAsync(0);
    const end = waiting.shift();
    if (!end) throw new Error('nobody asked for the list');
    end(ids);
    await vi.advanceTimersByTimeAsync(0);
  };
  const tell = (...ids: string[]) => {
    const servers = ids.map((server_id) => ({ server_id, status: 'online', timestamp: null, last_seen_at: null }));
    watcher?.message({ type: 'fleet', data: { servers } });
  };
  return { open: () => watcher?.opened?.(), answer, tell, lists: () => lists, stop };
}

const names = () => fleet.rows.map(({ id }) => id);

it('what was added between the list and the first message is read', async () => {
  const { open, answer, tell, lists, stop } = watched();
  open();
  tell('apple', 'pear');
  await answer('apple');

  await answer('apple', 'pear');

  expect(names()).toEqual(['apple', 'pear']);
  expect(fleet.row('pear')?.reading).toMatchObject({ status: 'online' });
  expect(lists()).toBe(2);
  stop();
});

it('what was removed between the list and the first message is gone', async () => {
  const { open, answer, tell, lists, stop } = watched();
  open();
  await answer('apple', 'pear');
  tell('apple');

  await vi.advanceTimersByTimeAsync(6_000);
  await answer('apple');

  expect(names()).toEqual(['apple']);
  expect(lists()).toBe(2);
  stop();
});

it('a server that was removed again is asked for once', async () => {
  const { open, answer, tell, lists, stop } = watched();
  open();
  await answer('apple');
  tell('apple', 'pear');
  await answer('apple');

  for (let second = 0; second < 60; second++) {
    tell('apple');
    await vi.advanceTimersByTimeAsync(1_000);
  }

  expect(names()).toEqual(['apple']);
  expect(lists()).toBe(2);
  stop();
});

it('servers of a large fleet come in several messages', async () => {
  const { open, answer, tell, lists, stop } = watched();
  open();
  await answer('apple', 'pear', 'plum');
  tell('apple', 'pear');
  tell('plum');
  await vi.advanceTimersByTimeAsync(60_000);

  expect(lists()).toBe(1);
  stop();
});

it('a list that the first message agrees with is read once', async () => {
  const { open, answer, tell, lists, stop } = watched();
  open();
  tell('apple', 'pear');
  await answer('apple', 'pear');

  tell('apple');
  await vi.advanceTimersByTimeAsync(60_000);

  expect(names()).toEqual(['apple', 'pear']);
  expect(lists()).toBe(1);
  stop();
});
