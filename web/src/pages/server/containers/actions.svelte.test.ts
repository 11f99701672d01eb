// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, it, vi } from 'vitest';
import { api } from '../../../api/client';
import type { Container, Server } from '../../../api/types';
import { confirm } from '../../../ui/confirm.svelte';
import { answered, press, statesOf, waiting } from '../../testing';
import Actions from './Actions.svelte';
import { ContainerList } from './list.svelte';

afterEach(() => void vi.restoreAllMocks());

it('what was pressed is busy and keeps its button, also while a container that restarts is down', async () => {
  const { answer, end } = waiting();
  vi.spyOn(confirm, 'ask').mockResolvedValue(true);
  vi.spyOn(api, 'GET').mockResolvedValue(answered([]));
  const post = vi.spyOn(api, 'POST').mockReturnValue(answer);
  const server = { id: 's', agent: { capabilities: ['docker'] } } as unknown as Server;
  let condition = $state('running');
  const props = {
    list: new ContainerList('s', () => server),
    refused: null,
    get container() {
      return { id: 'c', name: 'shop', state: condition } as unknown as Container;
    },
  };
  const shown = mount(Actions, { target: document.body, props });
  const states = () => statesOf([...document.querySelectorAll('button')]);
  const turn = (to: string) => {
    condition = to;
    flushSync();
  };
  const restart = document.querySelector('button');

  press(restart);
  await vi.waitFor(() => expect(states()).toEqual(['busy', 'disabled', 'disabled']));
  turn('exited');
  press(restart);
  expect(states()).toEqual(['busy', 'disabled', 'disabled']);
  expect(document.activeElement).toBe(restart);
  turn('running');
  end({ state: 'running' });

  await vi.waitFor(() => expect(states()).toEqual(['ready', 'ready', 'ready']));
  expect(document.activeElement).toBe(restart);
  expect(post).toHaveBeenCalledTimes(1);
  // Nothing is being done: what can be done is what its state allows.
  turn('exited');
  expect(states()).toEqual(['ready']);
  await unmount(shown);
});
