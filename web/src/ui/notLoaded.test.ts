// @vitest-environment jsdom
import { createRawSnippet, flushSync, mount, unmount, type Component, type Snippet } from 'svelte';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import * as m from '#messages/app';
import Loaded from './Loaded.svelte';

const LoadedName = Loaded as unknown as Component<{ load: () => Promise<string>; children: Snippet<[string]> }>;

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('fetch', () => Promise.resolve(new Response('<div id="app"></div>')));
  // The page is not loaded again automatically: it was a moment ago.
  sessionStorage.setItem('reloaded-at', String(Date.now() + 30_000));
});

afterEach(() => {
  sessionStorage.clear();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

it('what could not be loaded is tried again under the button that somebody is at', async () => {
  const load = vi.fn(() => Promise.reject<string>(new TypeError('network')));
  const children = createRawSnippet((name: () => string) => ({ render: () => `<h1>${name()}</h1>` }));
  const shown = mount(LoadedName, { target: document.body, props: { load, children } });
  const settle = async (ms: number) => {
    await vi.advanceTimersByTimeAsync(ms);
    flushSync();
  };
  await settle(100);
  const button = document.querySelector('button');
  expect(button?.textContent).toContain(m.reload());
  button?.focus();
  const tried = load.mock.calls.length;

  while (load.mock.calls.length < tried + 3) {
    await vi.advanceTimersToNextTimerAsync();
    expect(button?.isConnected).toBe(true);
  }
  expect(document.activeElement).toBe(button);

  load.mockImplementation(() => Promise.resolve('here'));
  await settle(60_000);
  expect(document.body.textContent).toBe('here');
  expect(load.mock.calls.length).toBe(tried + 4);
  await unmount(shown);
});
