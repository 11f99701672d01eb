// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, it, vi } from 'vitest';
import { api } from '../../api/client';
import { live } from '../../live/socket.svelte';
import { router } from '../../router/router.svelte';
import { answered, press } from '../testing';
import Run from './Run.svelte';

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

it('the head stays from one tab to another, and the focus on the tab that was pressed', async () => {
  vi.stubGlobal('scrollTo', () => undefined);
  vi.spyOn(live, 'watch').mockReturnValue({ socket: {}, stop: () => undefined } as never);
  vi.spyOn(api, 'GET').mockImplementation((() => Promise.resolve(answered([]))) as never);
  router.go('/run');
  const shown = mount(Run, { target: document.body });
  flushSync();
  const head = document.querySelector('h1');
  const heads = () => [...document.querySelectorAll('h1')];
  expect(heads()).toHaveLength(1);

  for (const address of ['/run?view=schedules', '/run?view=waiting', '/run?view=schedules', '/run']) {
    const tab = document.querySelector<HTMLElement>(`nav a[href="${address}"]`);
    press(tab);
    expect(location.pathname + location.search).toBe(address);
    expect(tab?.getAttribute('aria-current')).toBe('page');
    expect(document.activeElement).toBe(tab);
    expect(heads()).toHaveLength(1);
    expect(heads()[0]).toBe(head);
  }

  // Each of these has a head of its own.
  for (const address of ['/run?view=schedules&new=1', '/run?view=schedules&schedule=x']) {
    router.go(address);
    flushSync();
    expect(document.querySelector('nav'), address).toBeNull();
  }
  await unmount(shown);
});
