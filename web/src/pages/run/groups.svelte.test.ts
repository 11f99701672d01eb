// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { BatchResult } from '../../api/types';
import BatchGroups from './BatchGroups.svelte';

beforeEach(() => void vi.useFakeTimers());

afterEach(() => {
  document.body.replaceChildren();
  vi.useRealTimers();
});

const said = (id: string, preview: string) =>
  ({ command_id: id, server_id: id, server_name: id, status: 'succeeded', exit_code: 0, preview }) as BatchResult;
const running = (id: string) => ({ ...said(id, ''), status: 'running', exit_code: null }) as BatchResult;

const some = (count: number, preview: string) =>
  Array.from({ length: count }, (_, index) => said(`s${index}`, preview));

function groupsOf(...first: BatchResult[]) {
  let results = $state.raw(first);
  const props = {
    get results() {
      return results;
    },
    open: () => undefined,
  };
  const shown = mount(BatchGroups, { target: document.body, props });
  flushSync();
  return {
    show: async (...next: BatchResult[]) => {
      results = next;
      flushSync();
      await vi.advanceTimersByTimeAsync(0);
    },
    names: () =>
      [...document.querySelectorAll('li')].map((group) => {
        return [...group.querySelectorAll<HTMLElement>('[data-command]')].map((name) => name.textContent);
      }),
    name: (id: string) => document.querySelector<HTMLElement>(`[data-command="${id}"]`),
    end: () => unmount(shown),
  };
}

it('groups stay where they are while something in them has the focus', async () => {
  const { show, names, name, end } = groupsOf(said('a', 'x'), said('b', 'y'), running('c'));
  const focused = name('b');
  focused?.focus();

  await show(said('a', 'x'), said('b', 'y'), said('c', 'y'));

  expect(names()).toEqual([['a'], ['b', 'c']]);
  expect(document.activeElement).toBe(focused);
  focused?.blur();
  await vi.advanceTimersByTimeAsync(1_000);
  flushSync();
  expect(names()).toEqual([['b', 'c'], ['a']]);
  await end();
});

it('the focus goes with a server into its other group, however many are in it', async () => {
  const many = some(12, 'x');
  const { show, name, end } = groupsOf(...many, running('last'), running('other'));
  name('last')?.focus();

  await show(...many, said('last', 'x'), running('other'));

  expect(name('last')?.closest('li')?.contains(name('s0'))).toBe(true);
  expect(document.activeElement).toBe(name('last'));
  await end();
});

it('a name has the focus where the button that had it is gone, or its group', async () => {
  const { show, name, end } = groupsOf(...some(13, 'x'), said('a', 'y'));
  const more = [...document.querySelectorAll('button')].find((button) => !button.dataset.command);
  more?.focus();
  expect(document.activeElement).toBe(more);

  await show(said('a', 'y'), ...some(12, 'x'));
  expect(document.activeElement).toBe(name('s0'));

  const output = document.querySelectorAll('pre')[1];
  output?.focus();
  expect(document.activeElement).toBe(output);
  await show(...some(12, 'x'));
  expect(document.activeElement).toBe(name('s0'));
  await end();
});
