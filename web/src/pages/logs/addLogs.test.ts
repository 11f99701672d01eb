// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, it, vi } from 'vitest';
import { api } from '../../api/client';
import { fleet } from '../../live/fleet.svelte';
import { answered, waiting, withDialogs } from '../testing';
import AddLogs from './AddLogs.svelte';
import { MOST_LOGS } from './sources';

withDialogs();
afterEach(() => {
  fleet.reset();
  vi.restoreAllMocks();
});

const server = (id: string, capabilities: string[]) => ({
  id,
  name: id,
  tags: [],
  rights: ['logs'],
  agent: { capabilities },
});

it('the containers of a server stand under no other one, however late their answer', async () => {
  const slow = waiting();
  vi.spyOn(api, 'GET').mockImplementation(((path: string) =>
    path.includes('docker')
      ? slow.answer
      : Promise.resolve(answered([server('apple', ['docker']), server('pear', ['logs'])]))) as never);
  await fleet.load();
  const props = { open: true, keys: [], choose: () => undefined, close: () => undefined };
  const shown = mount(AddLogs, { target: document.body, props });
  flushSync();
  const options = () => [...document.querySelectorAll<HTMLElement>('[role="option"]')];
  const press = (found: HTMLElement | undefined) => {
    found?.click();
    flushSync();
  };
  const choose = (name: string) => press(options().find((one) => one.textContent?.includes(name)));

  choose('apple');
  press(document.querySelector<HTMLElement>('footer button') ?? undefined);
  choose('pear');
  slow.end([{ id: '1', name: 'web', state: 'running', image: 'nginx' }]);
  await new Promise((resolve) => setTimeout(resolve));
  flushSync();
  expect(options().map((one) => one.textContent?.trim())).toEqual(['System log']);

  press(document.querySelector<HTMLElement>('footer button') ?? undefined);
  choose('apple');
  await vi.waitFor(() => expect(options().map((one) => one.textContent)).toEqual([expect.stringContaining('web')]));
  await unmount(shown);
});

it('the button that added the last log keeps the focus, and adds no other', async () => {
  vi.spyOn(api, 'GET').mockResolvedValue(answered([server('pear', ['logs'])]));
  await fleet.load();
  const choose = vi.fn();
  const keys = Array.from({ length: MOST_LOGS }, (_, index) => `pear:/var/log/${index}`);
  const shown = mount(AddLogs, { target: document.body, props: { open: true, keys, choose, close: () => undefined } });
  flushSync();
  document.querySelector<HTMLElement>('[role="option"]')?.click();
  flushSync();
  const add = document.querySelector<HTMLButtonElement>('form button');

  expect([add?.disabled, add?.getAttribute('aria-disabled')]).toEqual([false, 'true']);
  add?.click();
  flushSync();
  expect(choose).not.toHaveBeenCalled();
  expect(document.querySelector('[aria-invalid="true"]')).toBeNull();
  await unmount(shown);
});
