// @vitest-environment jsdom
import { mount, unmount } from 'svelte';
import { afterEach, expect, it, vi } from 'vitest';
import { api } from '../../../api/client';
import { live } from '../../../live/socket.svelte';
import { press, waiting, withObservers } from '../../testing';
import CommandCard from './CommandCard.svelte';
import { WatchedCommand } from './watched.svelte';

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

it('why a command could not be read, and the focus on its button, stay until there is an answer', async () => {
  withObservers();
  const listens = vi.spyOn(live, 'watch').mockReturnValue({ socket: {}, stop: () => undefined } as never);
  const [failing, answering] = [waiting(), waiting()];
  const asked = vi.spyOn(api, 'GET').mockReturnValueOnce(failing.answer).mockReturnValueOnce(answering.answer);
  const watched = new WatchedCommand('s', 'c');
  const shown = mount(CommandCard, { target: document.body, props: { watched } });
  const again = () => document.querySelector<HTMLElement>('[role="alert"] button');
  const leave = watched.watch();
  failing.end(new TypeError('network'));
  await vi.waitFor(() => expect(again()).not.toBeNull());
  const button = again();

  press(button);
  press(button);
  expect(asked).toHaveBeenCalledTimes(2);
  expect(document.activeElement).toBe(button);
  const now = '2026-11-21T10:00:00Z';
  answering.end({ command: 'uptime', status: 'queued', username: 'ada', created_at: now, timeout_seconds: 60 });

  await vi.waitFor(() => expect(again()).toBeNull());
  expect(document.body.textContent).toContain('uptime');
  expect(listens).toHaveBeenCalledTimes(1);
  leave();
  await unmount(shown);
});
