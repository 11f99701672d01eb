// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { expect, it } from 'vitest';
import * as m from '#messages/run';
import Picker from './Picker.svelte';
import type { Choice } from './select';

const choice = (name: string, why: Choice['why']): Choice => ({
  id: name,
  name,
  host: name,
  tags: ['web'],
  why,
  refused: null,
});

it('what is picked counts, and the tag with the focus stays, while all servers are away', async () => {
  let all = $state.raw([choice('a', null), choice('b', null)]);
  let picked = $state.raw<ReadonlySet<string>>(new Set(['a']));
  const props = {
    pick: (next: Set<string>) => (picked = next),
    get all() {
      return all;
    },
    get picked() {
      return picked;
    },
  };
  const shown = mount(Picker, { target: document.body, props });
  const count = () => document.querySelector('[role="status"]')?.textContent;
  const chosen = () => [...picked];
  const tag = document.querySelector<HTMLButtonElement>('.tag');
  tag?.focus();
  expect(count()).toBe(m.picked({ count: 1, total: 2 }));

  all = [choice('a', 'offline'), choice('b', 'offline')];
  flushSync();

  expect(count()).toBe(m.picked({ count: 1, total: 1 }));
  expect([tag?.disabled, tag?.getAttribute('aria-disabled')]).toEqual([false, 'true']);
  expect(document.activeElement).toBe(tag);
  tag?.click();
  expect(chosen()).toEqual(['a']);
  await unmount(shown);
});
