// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { expect, it } from 'vitest';
import { press } from '../pages/testing';
import TagsInput from './TagsInput.svelte';

it('the field has the focus once a pressed tag is taken or removed', async () => {
  const shown = mount(TagsInput, { target: document.body, props: { value: ['a'], known: ['a', 'b'] } });
  flushSync();
  const chips = () => [...document.querySelectorAll('.tags .chip')].map((chip) => chip.textContent?.trim());
  const focused = () => document.activeElement?.tagName;

  press(document.querySelector<HTMLElement>('.offered button'));
  expect([chips(), focused()]).toEqual([['a', 'b'], 'INPUT']);
  press(document.querySelector<HTMLElement>('.tags button'));
  expect([chips(), focused()]).toEqual([['b'], 'INPUT']);
  await unmount(shown);
});
