// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, it, vi } from 'vitest';
import { api } from '../../../api/client';
import { router } from '../../../router/router.svelte';
import { answered, withObservers } from '../../testing';
import type { ServerView } from '../view.svelte';
import Containers from './Containers.svelte';

afterEach(() => {
  document.body.replaceChildren();
  vi.unstubAllGlobals();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const containerOf = (name: string, state = 'running') => ({
  id: name,
  name,
  state,
  status: 'Up',
  image: 'i',
  ports: [],
});
const listed = (...names: string[]) => answered(names.map((name) => containerOf(name)));
/** A server whose agent reads containers; `latest` is its last sample. */
const viewOf = (latest: () => unknown) =>
  ({
    id: 's',
    server: { agent: { capabilities: ['docker'] } },
    status: 'online',
    events: [],
    can: () => true,
    refusal: () => null,
    get latest() {
      return latest();
    },
  }) as unknown as ServerView;
const names = () => [...document.querySelectorAll('tbody .name')].map((name) => name.textContent);

it('rows that are sorted by numbers stay under a pointer', async () => {
  vi.useFakeTimers();
  vi.spyOn(api, 'GET').mockResolvedValue(listed('a', 'b'));
  router.go('/servers/s/containers?sort=-cpu', { keepScroll: true });
  let used = $state.raw<Record<string, number>>({ a: 2, b: 1 });
  const view = viewOf(() => ({
    containers: Object.entries(used).map(([id, cpu_percent]) => ({ id, cpu_percent, memory_bytes: 1 })),
  }));
  const shown = mount(Containers, { target: document.body, props: { view } });
  const use = (now: typeof used) => {
    used = now;
    flushSync();
  };
  await vi.advanceTimersByTimeAsync(0);
  flushSync();
  expect(names()).toEqual(['a', 'b']);

  document.querySelector('tbody')?.dispatchEvent(new Event('pointermove', { bubbles: true }));
  use({ a: 1, b: 2 });
  expect(names()).toEqual(['a', 'b']);
  await vi.advanceTimersByTimeAsync(9_000);
  use({ a: 1, b: 3 });
  expect(names()).toEqual(['b', 'a']);

  // Nor do they leave the focus.
  document.querySelector<HTMLElement>('tbody .name')?.focus();
  use({ a: 4, b: 3 });
  expect(names()).toEqual(['b', 'a']);
  // Who sorts them in another way moves them.
  router.set({ sort: 'cpu' });
  flushSync();
  expect(names()).toEqual(['b', 'a']);
  router.set({ sort: '-cpu' });
  flushSync();
  expect(names()).toEqual(['a', 'b']);
  await unmount(shown);
});

it('the row of a container that is gone keeps its place and the focus, and says so, until the list is released', async () => {
  vi.useFakeTimers();
  const get = vi.spyOn(api, 'GET').mockResolvedValue(listed('a', 'b', 'c'));
  router.go('/servers/s/containers', { keepScroll: true });
  const view = viewOf(() => null);
  const shown = mount(Containers, { target: document.body, props: { view } });
  const readAgain = async () => {
    await vi.advanceTimersByTimeAsync(10_000);
    flushSync();
  };
  await vi.advanceTimersByTimeAsync(0);
  flushSync();
  const name = [...document.querySelectorAll<HTMLElement>('tbody .name')][1];
  name?.focus();

  get.mockResolvedValue(listed('a', 'c'));
  await readAgain();

  expect(names()).toEqual(['a', 'b', 'c']);
  expect(document.activeElement).toBe(name);
  expect(name?.closest('tr')?.textContent).toContain('removed');
  expect(document.body.textContent).toContain('2 of 2 containers up');
  name?.click();
  expect(router.query.get('c')).toBeNull();
  // One that comes back is what it was.
  get.mockResolvedValue(listed('a', 'b', 'c'));
  await readAgain();
  expect(name?.closest('tr')?.textContent).not.toContain('removed');
  // Where nothing else is left, the row is not replaced by a note either.
  get.mockResolvedValue(listed());
  await readAgain();
  expect(names()).toEqual(['a', 'b', 'c']);
  get.mockResolvedValue(listed('a'));
  name?.blur();
  await readAgain();
  expect(names()).toEqual(['a']);
  await unmount(shown);
});

it('the focus stays in the row, and at the head of the panel, whose button is gone with what it did', async () => {
  vi.useFakeTimers();
  withObservers();
  let state = 'running';
  vi.spyOn(api, 'GET').mockImplementation(((path: string) =>
    path.endsWith('/containers')
      ? Promise.resolve(answered([containerOf('a', state)]))
      : new Promise(() => undefined)) as never);
  router.go('/servers/s/containers?c=a', { keepScroll: true });
  const target = document.body.appendChild(document.createElement('main'));
  const shown = mount(Containers, { target, props: { view: viewOf(() => null) } });
  const turn = async (to: string) => {
    state = to;
    await vi.advanceTimersByTimeAsync(10_000);
    flushSync();
    await vi.advanceTimersByTimeAsync(0);
  };
  await turn('running');

  const stop = document.querySelector<HTMLElement>('tbody button[aria-label^="Stop"]');
  stop?.focus();
  await turn('exited');
  expect([stop?.isConnected, document.activeElement]).toEqual([false, document.querySelector('tbody .name')]);

  const start = document.querySelector<HTMLElement>('section header button');
  start?.focus();
  await turn('running');
  expect([start?.isConnected, document.activeElement]).toEqual([false, document.querySelector('section h2')]);
  await unmount(shown);
});
