// @vitest-environment jsdom
import { afterEach, expect, it, vi } from 'vitest';
import { api } from '../../../api/client';
import type { Container, Server } from '../../../api/types';
import { ContainerList } from './list.svelte';

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const container = (state: string) => ({ id: 'c', name: 'shop', state }) as unknown as Container;
const answer = (data: unknown) => ({ data, response: new Response() }) as unknown as never;

it('a list that was asked for before something was done does not take it back', async () => {
  vi.useFakeTimers();
  const server = { id: 's', agent: { capabilities: ['docker'] }, rights: ['docker'] } as unknown as Server;
  const asked: ((containers: Container[]) => void)[] = [];
  vi.spyOn(api, 'GET').mockImplementation(
    () => new Promise((resolve) => asked.push((containers) => resolve(answer(containers)))) as never,
  );
  vi.spyOn(api, 'POST').mockResolvedValue(answer({ state: 'exited' }));
  const list = new ContainerList('s', () => server);
  void list.load();
  asked[0]?.([container('running')]);
  await vi.advanceTimersByTimeAsync(0);
  void list.load();

  await list.act(container('running'), 'stop');
  asked[1]?.([container('running')]);
  await vi.advanceTimersByTimeAsync(0);

  expect(list.containers?.[0]?.state).toBe('exited');
  // It is asked for once more.
  await vi.advanceTimersByTimeAsync(1_000);
  expect(asked).toHaveLength(3);
  asked[2]?.([container('paused')]);
  await vi.advanceTimersByTimeAsync(0);
  expect(list.containers?.[0]?.state).toBe('paused');
});
