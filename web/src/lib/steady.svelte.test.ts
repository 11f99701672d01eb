// @vitest-environment jsdom
import { flushSync } from 'svelte';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { inOrderOf, Steady } from './steady.svelte';

beforeEach(() => void vi.useFakeTimers());

afterEach(() => {
  document.body.replaceChildren();
  vi.useRealTimers();
});

/** A list of the given rows, and a head that is not one of them. */
function listOf(steady: Steady<string>, ...rows: string[]) {
  document.body.innerHTML = `<div><button>head</button>${rows.map((row) => `<p class="row"><button id="${row}"></button></p>`).join('')}</div><input />`;
  const [list] = document.body.children;
  const stop = list && steady.within(list);
  const focus = (selector: string) => document.querySelector<HTMLElement>(selector)?.focus();
  return { stop, focus };
}

it('those of before stay in their order, and the others follow', () => {
  const order = inOrderOf(['c', 'a', 'gone'], ['a', 'new', 'b', 'c'], (one) => one);

  expect(order).toEqual(['c', 'a', 'new', 'b']);
});

it('an order stays while the focus is in a row, unless another one is chosen', () => {
  const steady = new Steady<string>((one) => one, '.row');
  const { focus, stop } = listOf(steady, 'a', 'b');
  expect(steady.order(['a', 'b'], 'up')).toEqual(['a', 'b']);
  // The heads that sort it do not hold it.
  focus('div > button');
  expect(steady.order(['b', 'a'], 'up')).toEqual(['b', 'a']);

  focus('#b');

  expect(steady.order(['a', 'c', 'b'], 'up')).toEqual(['b', 'a', 'c']);
  expect(steady.order(['c', 'b'], 'up', (one) => (one === 'a' ? one : null))).toEqual(['b', 'a', 'c']);
  expect(steady.order(['c', 'b'], 'up')).toEqual(['b', 'c']);
  expect(steady.order(['c', 'b'], 'down')).toEqual(['c', 'b']);
  focus('input');
  expect(steady.order(['b', 'c'], 'down')).toEqual(['b', 'c']);
  stop?.();
});

it('is sorted again once the focus has left, and the press that took it away is over', async () => {
  const steady = new Steady<string>((one) => one, '.row');
  const { focus, stop } = listOf(steady, 'a', 'b');
  let sorted = $state.raw(['a', 'b']);
  let shown: string[] = [];
  const end = $effect.root(() => {
    $effect(() => {
      shown = steady.order(sorted);
    });
  });
  const after = async (ms: number) => {
    await vi.advanceTimersByTimeAsync(ms);
    flushSync();
    return shown;
  };
  await after(0);
  focus('#a');
  sorted = ['b', 'a'];
  expect(await after(1_000)).toEqual(['a', 'b']);
  focus('#b');
  expect(await after(1_000)).toEqual(['a', 'b']);

  focus('input');

  expect(await after(100)).toEqual(['a', 'b']);
  expect(await after(400)).toEqual(['b', 'a']);
  end();
  stop?.();
});
