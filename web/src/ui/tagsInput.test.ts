// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, it, vi } from 'vitest';
import { press } from '../pages/testing';
import TagsInput from './TagsInput.svelte';

afterEach(() => {
  vi.unstubAllGlobals();
});

it.each([
  ['the field', false, 'INPUT'],
  ['what is around it, on a touch screen,', true, 'DIV'],
])('%s has the focus once a pressed tag is taken or removed', async (_, isTouch, where) => {
  vi.stubGlobal('matchMedia', () => ({ matches: isTouch }));
  const shown = mount(TagsInput, { target: document.body, props: { value: ['a'], known: ['a', 'b'] } });
  flushSync();
  const chips = () => [...document.querySelectorAll('.tags .chip')].map((chip) => chip.textContent?.trim());
  const focused = () => document.activeElement?.tagName;

  press(document.querySelector<HTMLElement>('.offered button'));
  expect([chips(), focused()]).toEqual([['a', 'b'], where]);
  press(document.querySelector<HTMLElement>('.tags button'));
  expect([chips(), focused()]).toEqual([['b'], where]);
  await unmount(shown);
});
