// @vitest-environment jsdom
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { live } from '../../live/socket.svelte';
import { Log } from '../../ui/log/log.svelte';
import { rows } from '../../ui/log/testing';
import { Mix } from './mix.svelte';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

type Watcher = Parameters<typeof live.watch>[1];

/** Two logs that are read together, of which the service tells a line of a time. */
function mixed() {
  const watchers = new Map<string, Watcher>();
  vi.spyOn(live, 'watch').mockImplementation((path, watcher) => {
    watchers.set(String(/one|other/.exec(path)), watcher);
    return { socket: {}, stop: () => undefined } as unknown as ReturnType<typeof live.watch>;
  });
  const log = new Log();
  const mix = new Mix(log);
  const chosen = ['one', 'other'].map((key) => ({ key, serverId: key, source: { kind: 'journal' } as never }));
  const origin = (key: string) => ({ key, name: key, serverId: key, colour: '--series-1' });
  mix.set(
    chosen,
    ({ key }) => origin(key),
    () => 0,
  );
  const tell = (key: string, ...seconds: number[]) => {
    for (const second of seconds) {
      const data = { message: `${key} ${second}`, timestamp: new Date(second * 1_000).toISOString() };
      watchers.get(key)?.message({ type: 'log', data });
    }
  };
  return { log, mix, tell };
}

it('lines from before stand at their place, though a slow connection brings some of them late', async () => {
  const { log, mix, tell } = mixed();

  tell('one', 1, 3);
  tell('other', 2, 6);
  await vi.advanceTimersByTimeAsync(2_000);
  tell('one', 4, 5);
  await vi.advanceTimersByTimeAsync(2_000);

  expect(rows(log)).toEqual(['one 1', 'other 2', 'one 3', 'one 4', 'one 5', 'other 6']);
  expect(mix.members.map(({ count, late }) => [count, late])).toEqual([
    [4, 0],
    [2, 0],
  ]);
  mix.close();
});

it('a line that is written later and comes late is counted, and the others stay where they are', async () => {
  const { log, mix, tell } = mixed();
  tell('one', 1);
  tell('other', 2);
  await vi.advanceTimersByTimeAsync(60_000);

  tell('other', 9);
  await vi.advanceTimersByTimeAsync(2_000);
  tell('one', 8);
  await vi.advanceTimersByTimeAsync(2_000);

  expect(rows(log)).toEqual(['one 1', 'other 2', 'other 9', 'one 8']);
  expect(mix.members.map(({ late }) => late)).toEqual([1, 0]);
  mix.close();
});

it('new lines that follow a late one at once are not held back with it', async () => {
  const { log, mix, tell } = mixed();
  tell('one', 1);
  tell('other', 20);
  await vi.advanceTimersByTimeAsync(2_000);

  tell('one', 2);
  for (let second = 21; second < 31; second += 1) {
    await vi.advanceTimersByTimeAsync(200);
    tell('one', second);
  }

  expect(rows(log).slice(0, 3)).toEqual(['one 1', 'one 2', 'other 20']);
  expect(rows(log)).toContain('one 22');
  mix.close();
});
