// @vitest-environment jsdom
import { afterEach, expect, it, vi } from 'vitest';
import { live } from '../../live/socket.svelte';
import { Tail } from './tail.svelte';

afterEach(() => void vi.restoreAllMocks());

type Watcher = Parameters<typeof live.watch>[1];

it('the last lines stay until a connection that comes back says them again', () => {
  let watcher: Watcher | undefined;
  vi.spyOn(live, 'watch').mockImplementation((_, given) => {
    watcher = given;
    return { socket: {}, stop: () => undefined } as unknown as ReturnType<typeof live.watch>;
  });
  const tail = new Tail();
  tail.watch('one');
  const tell = (...texts: string[]) => {
    for (const message of texts) watcher?.message({ type: 'log', data: { timestamp: null, message } });
  };
  const shown = () => tail.lines.map(({ text }) => text);
  watcher?.opened?.();
  tell('a', 'b');

  watcher?.closed?.(1006);
  watcher?.opened?.();
  expect([tail.isOpen, shown()]).toEqual([true, ['a', 'b']]);
  tell('b', 'c');
  expect(shown()).toEqual(['b', 'c']);

  watcher?.closed?.(1006);
  watcher?.opened?.();
  watcher?.message({ type: 'error', data: { code: 'agent_refused', detail: 'no more' } });
  expect([tail.problem, shown()]).toEqual(['no more', []]);
});
