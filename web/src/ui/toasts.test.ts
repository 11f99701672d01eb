// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { expect, it } from 'vitest';
import { toasts } from './toasts.svelte';
import Toasts from './Toasts.svelte';

const say = (...texts: string[]) => {
  for (const text of texts) toasts.failed(text);
  flushSync();
};
const said = () => [...document.querySelectorAll('.text')].map((text) => text.textContent);

it('of too many notes the oldest goes, but not from under the focus or the pointer', async () => {
  const shown = mount(Toasts, { target: document.body });
  say('a', 'b', 'c', 'd', 'e');
  expect(said()).toEqual(['b', 'c', 'd', 'e']);

  const [first, second] = document.querySelectorAll<HTMLElement>('.toast');
  const close = first?.querySelector<HTMLElement>('.close');
  close?.focus();
  say('f');
  expect(said()).toEqual(['b', 'd', 'e', 'f']);
  expect(document.activeElement).toBe(close);
  expect(second?.isConnected).toBe(false);

  document.querySelectorAll('.toast')[1]?.dispatchEvent(new Event('pointerenter'));
  say('g', 'h');
  expect(said()).toEqual(['b', 'd', 'g', 'h']);

  close?.blur();
  document.querySelectorAll('.toast')[1]?.dispatchEvent(new Event('pointerleave'));
  say('i', 'j');
  expect(said()).toEqual(['g', 'h', 'i', 'j']);
  await unmount(shown);
});
