// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { api } from '../../api/client';
import { fleet } from '../../live/fleet.svelte';
import { live } from '../../live/socket.svelte';
import { router } from '../../router/router.svelte';
import { answered, withObservers } from '../testing';
import Timeline from './Timeline.svelte';

vi.hoisted(() => {
  globalThis.matchMedia = () => ({ matches: false, addEventListener: () => undefined }) as unknown as MediaQueryList;
});

beforeEach(() => {
  vi.useFakeTimers();
  withObservers();
  vi.spyOn(HTMLCanvasElement.prototype, 'getContext').mockReturnValue(null);
  vi.spyOn(live, 'watch').mockReturnValue({ socket: {}, stop: () => undefined } as never);
});

afterEach(() => {
  document.body.replaceChildren();
  fleet.reset();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const ids = ['a', 'b', 'c'];

/** The page with servers that have these values. */
async function timelineOf(first: Record<string, number | null>) {
  let values = first;
  vi.spyOn(api, 'GET').mockImplementation(((path: string, { params }: { params: { query: { start: string } } }) => {
    if (path === '/api/v1/servers') return Promise.resolve(answered(ids.map((id) => ({ id, name: id, tags: [] }))));
    if (!path.endsWith('/heat')) return Promise.resolve(answered([]));
    const column = (id: string) => Array.from({ length: 15 }, () => values[id] ?? null);
    const servers = ids.map((id) => ({ server_id: id, mean: column(id), max: column(id) }));
    const start = Date.parse(params.query.start) / 1000;
    return Promise.resolve(answered({ start, bucket_seconds: 60, scale: 1, servers }));
  }) as never);
  router.go('/timeline?range=15m', { keepScroll: true });
  const shown = mount(Timeline, { target: document.body });
  const settle = async (ms: number) => {
    await vi.advanceTimersByTimeAsync(ms);
    flushSync();
    await vi.advanceTimersByTimeAsync(10);
    flushSync();
  };
  const read = async (next: typeof values) => {
    values = next;
    await settle(61_000);
  };
  const rows = () => [...document.querySelectorAll('tbody tr')].map((row) => row.querySelector('.name')?.textContent);
  await settle(1_000);
  await settle(1_000);
  const buttons = () => [...document.querySelectorAll<HTMLElement>('tbody button')];
  return { settle, read, rows, buttons, end: () => unmount(shown) };
}

it('the servers with the highest values stay where they are while one of them has the focus', async () => {
  const { settle, read, rows, buttons, end } = await timelineOf({ a: 30, b: 20, c: 10 });
  expect(rows()).toEqual(['a', 'b', 'c']);
  const button = buttons()[1];
  button?.focus();

  await read({ a: 30, b: 40, c: 50 });
  expect(rows()).toEqual(['a', 'b', 'c']);
  await read({ a: 30, b: null, c: 50 });
  expect(rows()).toEqual(['a', 'b', 'c']);
  expect(document.querySelectorAll('tbody tr')[1]?.textContent).toContain('–');
  expect(document.activeElement).toBe(button);

  button?.blur();
  await settle(1_000);
  expect(rows()).toEqual(['c', 'a']);
  await end();
});

it('a press in the list moves none of its rows, also where keys led to it from the map', async () => {
  const { settle, read, rows, buttons, end } = await timelineOf({ a: 30, b: 20, c: 10 });
  const map = document.querySelector<HTMLElement>('.map');
  map?.focus();
  map?.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowLeft', bubbles: true }));
  await settle(100);
  const matches = Element.prototype.matches;
  let isByKey = true;
  vi.spyOn(Element.prototype, 'matches').mockImplementation(function (this: Element, selectors) {
    return selectors === ':focus-visible' ? isByKey : matches.call(this, selectors);
  });
  buttons()[0]?.focus();
  await settle(100);
  await read({ a: 30, b: 40, c: 50 });
  expect(rows()).toEqual(['a', 'b', 'c']);

  // While the button is held down: the present moves on.
  isByKey = false;
  buttons()[2]?.focus();
  await read({ a: 30, b: 50, c: 40 });

  expect(rows()).toEqual(['a', 'b', 'c']);
  await end();
});
