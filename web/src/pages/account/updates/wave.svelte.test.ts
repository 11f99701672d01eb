// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { RolloutServer } from '../../../api/types';
import Wave from './Wave.svelte';

beforeEach(() => void vi.useFakeTimers());

afterEach(() => {
  document.body.replaceChildren();
  vi.useRealTimers();
});

it('servers stay where they are while one of them has the focus', async () => {
  const server = (id: string, state: RolloutServer['state']) =>
    ({ server_id: id, name: id, state, from_version: '1.0.0', changed_at: '2030-01-01T00:00:00Z' }) as RolloutServer;
  let servers = $state.raw([server('a', 'offered'), server('b', 'waiting')]);
  const props = {
    index: 0,
    tags: [],
    phase: 'running' as const,
    since: null,
    version: '1.1.0',
    get servers() {
      return servers;
    },
  };
  const shown = mount(Wave, { target: document.body, props });
  flushSync();
  const names = () => [...document.querySelectorAll('li li a')].map((link) => link.textContent);
  const [link] = document.querySelectorAll<HTMLElement>('li li a');
  expect(names()).toEqual(['a', 'b']);
  link?.focus();

  servers = [server('a', 'updated'), server('b', 'offered')];
  flushSync();

  expect(names()).toEqual(['a', 'b']);
  expect(document.activeElement).toBe(link);
  link?.blur();
  await vi.advanceTimersByTimeAsync(1_000);
  flushSync();
  expect(names()).toEqual(['b', 'a']);
  await unmount(shown);
});
