// @vitest-environment jsdom
import { afterEach, expect, it, vi } from 'vitest';
import type { Server } from '../../api/types';
import { api } from '../../api/client';
import { clock } from '../../live/clock.svelte';
import { live } from '../../live/socket.svelte';
import { ServerView } from './view.svelte';

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

type Watcher = Parameters<typeof live.watch>[1];

/** A page of a server that somebody shares, and the watchers of its sockets. */
function opened() {
  const watchers = new Map<string, Watcher>();
  vi.spyOn(live, 'watch').mockImplementation((path, watcher) => {
    watchers.set(path, watcher);
    return { socket: {}, stop: () => undefined } as unknown as ReturnType<typeof live.watch>;
  });
  const server = (rights: string[]) => ({ id: 'one', status: 'online', role: 'operator', rights }) as unknown as Server;
  const asked = vi.spyOn(api, 'GET');
  const answers = (rights: string[]) =>
    asked.mockResolvedValue({ data: server(rights), response: new Response() } as unknown as never);
  const view = new ServerView(server(['commands']));
  const leave = view.watch();
  const fleet = watchers.get('/ws/fleet');
  if (!fleet) throw new Error('nobody watches the fleet');
  const tell = (type: string) => fleet.message({ type, data: { servers: [] } });
  const turn = (status: string) => watchers.get('/ws/metrics/one')?.message({ type: 'status', data: { status } });
  return { view, fleet, tell, turn, leave, asked, answers, server };
}

/** What waits for an answer has run. */
const answered = () => new Promise((resolve) => setTimeout(resolve));

it('a right that ended before the socket was open is gone with its first message', async () => {
  const { view, fleet, tell, asked, answers } = opened();
  answers([]);

  tell('fleet');

  await answered();
  expect(view.may('commands')).toBe(false);
  tell('fleet');
  expect(asked).toHaveBeenCalledTimes(1);
  // And while it was lost.
  answers(['commands']);
  fleet.opened?.();
  tell('fleet');
  await answered();
  expect(view.may('commands')).toBe(true);
  // Or when the service says so.
  answers([]);
  tell('servers');
  await answered();
  expect(view.may('commands')).toBe(false);
  expect(asked).toHaveBeenCalledTimes(3);
});

it('what an agent that has come allows is asked for until there is an answer', async () => {
  const { view, turn, leave, asked, answers } = opened();
  vi.useFakeTimers();
  asked.mockRejectedValue(new TypeError('network'));

  turn('offline');
  await vi.advanceTimersByTimeAsync(10_000);
  answers(['commands', 'terminal']);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(view.server.rights).toEqual(['commands', 'terminal']);

  asked.mockRejectedValue(new TypeError('network'));
  turn('online');
  await vi.advanceTimersByTimeAsync(0);
  asked.mockClear();
  leave();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked).not.toHaveBeenCalled();
});

it('a change that was saved is not taken back by what was on its way, which is asked for once more', async () => {
  const { view, turn, asked, answers, server } = opened();
  answers(['commands']);

  turn('offline');
  answers(['logs']);
  view.take({ ...server([]), name: 'renamed' });
  expect(view.server.name).toBe('renamed');
  await answered();

  expect(view.may('commands')).toBe(false);
  expect(view.may('logs')).toBe(true);
  expect(asked).toHaveBeenCalledTimes(2);
});

it('numbers are old while an attempt to come back takes long', () => {
  let watcher: Watcher | undefined;
  const socket = { state: 'connecting', lostAt: clock.now - 2_000 };
  vi.spyOn(live, 'watch').mockImplementation((_, who) => {
    watcher = who;
    return { socket, stop: () => undefined } as unknown as ReturnType<typeof live.watch>;
  });
  const shown = () => {
    const view = new ServerView({ id: 'one', status: 'online', role: 'owner' } as unknown as Server);
    view.watch();
    watcher?.message({ type: 'metrics', data: { timestamp: new Date(clock.now).toISOString() } });
    return view;
  };

  expect(shown().isStale).toBe(false);
  socket.lostAt -= 2_000;
  expect(shown().isStale).toBe(true);
});
