// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { api } from '../../api/client';
import { fleet } from '../../live/fleet.svelte';
import { answered, withObservers } from '../testing';
import Cards from './Cards.svelte';
import { choiceOf } from './choice';
import { Listing } from './listing.svelte';

let shown: Record<string, unknown> | undefined;
let stop: (() => void) | undefined;

beforeEach(() => {
  vi.useFakeTimers();
  withObservers();
  // Room for two cards side by side.
  vi.spyOn(HTMLElement.prototype, 'clientWidth', 'get').mockReturnValue(640);
});

afterEach(async () => {
  if (shown) await unmount(shown);
  stop?.();
  document.body.replaceChildren();
  fleet.reset();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** The cards of some servers, chosen as an address says. */
async function cards(address: string, ...ids: string[]) {
  const list = (...listed: string[]) =>
    answered(
      listed.map((id) => ({ id, name: id, tags: [], status: 'online', role: 'owner', owner: { username: 'u' } })),
    );
  const get = vi.spyOn(api, 'GET').mockResolvedValue(list(...ids));
  await fleet.load();
  let query = $state.raw(new URLSearchParams(address));
  const listing = new Listing(() => choiceOf(query, 'cards'));
  stop = listing.within(document.body);
  shown = mount(Cards, {
    target: document.body,
    props: {
      get rows() {
        return listing.groups[0]?.rows ?? [];
      },
      isFirst: true,
      level: 2 as const,
    },
  });
  const settle = async (ms = 0) => {
    await vi.advanceTimersByTimeAsync(ms);
    flushSync();
  };
  await settle();
  return {
    link: (id: string) => document.querySelector<HTMLElement>(`a[href="/servers/${id}"]`),
    names: () => [...document.querySelectorAll('.name a')].map((link) => link.textContent),
    /** Where a card stands. */
    placeOf: (id: string) => {
      const place = document.querySelector(`a[href="/servers/${id}"]`)?.closest<HTMLElement>('[data-number]');
      return [place?.dataset.number, place?.style.getPropertyValue('--column')];
    },
    turn: async (id: string, status: 'online' | 'offline') => {
      const row = fleet.row(id);
      if (row) row.status = status;
      await settle();
    },
    list: async (...listed: string[]) => {
      get.mockResolvedValue(list(...listed));
      await fleet.load();
      await settle();
    },
    choose: async (next: string) => {
      query = new URLSearchParams(next);
      await settle();
    },
    settle,
  };
}

it('a card that gets into another line is the same element', async () => {
  const { names, link, placeOf, turn } = await cards('sort=status', 'a', 'b', 'c');
  expect(names()).toEqual(['a', 'b', 'c']);
  expect([placeOf('b'), placeOf('c')]).toEqual([
    ['0', '1'],
    ['1', '0'],
  ]);
  const before = link('b');

  await turn('c', 'offline');

  expect(names()).toEqual(['c', 'a', 'b']);
  expect(placeOf('b')).toEqual(['1', '0']);
  expect(link('b')).toBe(before);
});

it('cards stay where they are while one of them has the focus, and are sorted when it has left', async () => {
  const { names, link, turn, list, settle } = await cards('sort=status', 'a', 'b', 'c');
  const focused = link('b');
  focused?.focus();

  await list('0', 'a', 'b', 'c');
  expect(names()).toEqual(['a', 'b', 'c', '0']);
  await turn('c', 'offline');
  expect(names()).toEqual(['a', 'b', 'c', '0']);
  expect(document.activeElement).toBe(focused);

  focused?.blur();
  await settle(1_000);

  expect(names()).toEqual(['c', '0', 'a', 'b']);
});

it('a card that no longer fits stays while it has the focus, until something else is chosen', async () => {
  const { names, link, turn, choose } = await cards('status=online', 'a', 'b');
  const focused = link('b');
  focused?.focus();

  await turn('b', 'offline');
  expect(names()).toEqual(['a', 'b']);
  expect(document.activeElement).toBe(focused);

  await choose('status=online&order=reversed');
  expect(names()).toEqual(['a']);
});
