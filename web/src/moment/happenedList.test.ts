// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { SvelteMap } from 'svelte/reactivity';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import * as m from '#messages/moment';
import { api } from '../api/client';
import { Failure } from '../api/failure';
import Happened from './Happened.svelte';
import { AROUND } from './testing';

beforeEach(() => void vi.useFakeTimers());

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

it('says that nothing happened only of the time that it has read', async () => {
  const ends: ((how: 'empty' | 'failed') => void)[] = [];
  vi.spyOn(api, 'GET').mockImplementation(
    (() =>
      new Promise((resolve, reject) =>
        ends.push((how) =>
          how === 'empty' ? resolve({ data: [], response: new Response() }) : reject(Failure.unreachable()),
        ),
      )) as never,
  );
  const span = new SvelteMap(Object.entries(AROUND));
  const props = {
    serverId: 's1',
    get from() {
      return span.get('from') ?? 0;
    },
    get to() {
      return span.get('to') ?? 0;
    },
    at: null,
    pick: () => undefined,
  };
  const shown = mount(Happened, { target: document.body, props });
  const answer = async (how: 'empty' | 'failed') => {
    flushSync();
    await vi.advanceTimersByTimeAsync(1_000);
    for (const end of ends.splice(0)) end(how);
    await vi.advanceTimersByTimeAsync(0);
    flushSync();
  };
  const saysNone = () => document.body.textContent?.includes(m.noOwnEvents());
  const move = (bound: 'from' | 'to', by: number) => {
    span.set(bound, (span.get(bound) ?? 0) + by);
    flushSync();
  };
  expect(saysNone()).toBe(false);
  await answer('empty');
  expect(saysNone()).toBe(true);

  move('from', 3_600);
  move('to', 3_600);
  expect(saysNone()).toBe(false);
  await answer('failed');
  expect(saysNone()).toBe(false);

  move('from', -3_600);
  expect(saysNone()).toBe(true);
  await answer('empty');
  // What lasts has a later end each minute.
  move('to', 60);
  expect(saysNone()).toBe(true);
  await unmount(shown);
});
