// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, it, vi } from 'vitest';
import * as install from '#messages/install';
import type { FreshApiKey, Server } from '../../api/types';
import { live } from '../../live/socket.svelte';
import { service } from '../../session/service.svelte';
import Connect from './Connect.svelte';

// What is shown below the line is no matter here.
vi.mock('./FirstLook.svelte', () => ({ default: () => undefined }));
vi.mock('../../ui/Loaded.svelte', () => ({ default: () => undefined }));

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

type Watcher = Parameters<typeof live.watch>[1];

it('the line that is kept when the server is live is the one that was pasted', async () => {
  const watchers = new Map<string, Watcher>();
  vi.spyOn(live, 'watch').mockImplementation((path, watcher) => {
    watchers.set(path, watcher);
    return { socket: {}, stop: () => undefined } as unknown as ReturnType<typeof live.watch>;
  });
  vi.stubGlobal('fetch', () => Promise.resolve(Response.json({ public_url: 'https://signalbox.example.com' })));
  service.info = null;
  const server = { id: 'one', name: 'web', status: 'pending', role: 'owner' } as unknown as Server;
  const props = { server, apiKey: { key: 'sbk_secret' } as FreshApiKey, live: vi.fn() };
  const shown = mount(Connect, { target: document.body, props });
  const line = () => document.querySelector(`[aria-label="${install.installLine()}"]`)?.textContent;
  await vi.waitFor(() => expect(line()).toContain('sbk_secret'));
  for (const [index, field] of document.querySelectorAll('textarea').entries()) {
    field.value = `ada${index}=https://github.com/ada.keys`;
    field.dispatchEvent(new Event('input', { bubbles: true }));
  }
  flushSync();
  const pasted = line();
  expect(pasted).toMatch(/ --signers ada0=.* --release-signers ada1=/);

  watchers.get('/ws/metrics/one')?.message({ type: 'metrics', data: { timestamp: new Date().toISOString() } });
  flushSync();

  expect(props.live).toHaveBeenCalled();
  expect(line()).toBe(pasted);
  await unmount(shown);
});
