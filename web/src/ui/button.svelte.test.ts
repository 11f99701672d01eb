// @vitest-environment jsdom
import { createRawSnippet, flushSync, mount, unmount } from 'svelte';
import { expect, it, vi } from 'vitest';
import Button from './Button.svelte';

it('a button that is busy keeps the focus, and cannot be pressed again', async () => {
  const form = document.body.appendChild(document.createElement('form'));
  const [pressed, sent] = [vi.fn(), vi.fn((event: Event) => event.preventDefault())];
  form.addEventListener('submit', sent);
  let busy = $state(false);
  const props = {
    type: 'submit' as const,
    onclick: pressed,
    children: createRawSnippet(() => ({ render: () => '<span>Save</span>' })),
    get busy() {
      return busy;
    },
  };
  const shown = mount(Button, { target: form, props });
  const button = form.querySelector('button');
  button?.focus();
  button?.click();
  const turn = (to: boolean) => {
    busy = to;
    flushSync();
  };

  turn(true);
  expect([button?.disabled, button?.getAttribute('aria-disabled')]).toEqual([false, 'true']);
  expect(document.activeElement).toBe(button);
  button?.click();
  expect([pressed.mock.calls.length, sent.mock.calls.length]).toEqual([1, 1]);

  turn(false);
  expect(button?.hasAttribute('aria-disabled')).toBe(false);
  button?.click();
  expect([pressed.mock.calls.length, sent.mock.calls.length]).toEqual([2, 2]);
  await unmount(shown);
});

it('a button that is busy is disabled only after that', async () => {
  let busy = $state(true);
  const props = {
    label: 'Revoke',
    disabled: true,
    get busy() {
      return busy;
    },
  };
  const shown = mount(Button, { target: document.body, props });
  const button = document.querySelector('button');
  expect([button?.disabled, button?.getAttribute('aria-disabled')]).toEqual([false, 'true']);

  busy = false;
  flushSync();

  expect([button?.disabled, button?.hasAttribute('aria-disabled')]).toEqual([true, false]);
  await unmount(shown);
});
