// @vitest-environment jsdom
import { afterEach, expect, it, vi } from 'vitest';
import type { Server } from '../../api/types';
import { api } from '../../api/client';
import { live } from '../../live/socket.svelte';
import { ServerView } from './view.svelte';

afterEach(() => void vi.restoreAllMocks());

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
  view.watch();
  const fleet = watchers.get('/ws/fleet');
  if (!fleet) throw new Error('nobody watches the fleet');
  const tell = (type: string) => fleet.message({ type, data: { servers: [] } });
  return { view, fleet, tell, asked, answers };
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
