// @vitest-environment jsdom
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import * as m from '#messages/liveLog';
import { duration } from '../../../lib/format';
import { live } from '../../../live/socket.svelte';
import type { Line } from '../../../ui/log/lines';
import { Feed } from './feed.svelte';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

type Watcher = Parameters<typeof live.watch>[1];

/** A feed that has told five lines, and what it tells. */
function followed({ timed = true } = {}) {
  let watcher: Watcher | undefined;
  vi.spyOn(live, 'watch').mockImplementation((_, given) => {
    watcher = given;
    return { socket: {}, stop: () => undefined } as unknown as ReturnType<typeof live.watch>;
  });
  const shown: Line[] = [];
  const feed = new Feed('one', { kind: 'journal' } as never, 5, { push: (lines) => shown.push(...lines) });
  feed.start();
  const tell = (...numbers: number[]) => {
    for (const number of numbers) {
      const timestamp = timed ? `2026-11-21T10:00:0${number}Z` : null;
      watcher?.message({ type: 'log', data: { message: `line ${number}`, timestamp } });
    }
  };
  const away = () => watcher?.message({ type: 'error', data: { code: 'agent_offline', detail: 'it is away' } });
  const refused = () =>
    watcher?.message({ type: 'error', data: { code: 'path_not_allowed', detail: 'not that file' } });
  watcher?.opened?.();
  tell(1, 2, 3, 4, 5);
  return {
    feed,
    tell,
    away,
    refused,
    opened: () => watcher?.opened?.(),
    lost: () => watcher?.closed?.(1006),
    texts: () => shown.filter(({ kind }) => kind === 'line').map(({ plain }) => plain),
    notes: () => shown.filter(({ kind }) => kind !== 'line').map(({ plain }) => plain),
  };
}

const upTo = (last: number) => Array.from({ length: last }, (_, index) => `line ${index + 1}`);

it('last lines that come late, and with a pause, are those that are there', async () => {
  const { feed, tell, opened, lost, texts, notes } = followed();

  lost();
  await vi.advanceTimersByTimeAsync(2_000);
  opened();
  await vi.advanceTimersByTimeAsync(900);
  tell(1, 2, 3);
  await vi.advanceTimersByTimeAsync(20_000);
  tell(4, 5);
  expect(notes()).toEqual([m.lostNothingFor({ duration: duration(2_000) })]);
  tell(6);

  expect(texts()).toEqual(upTo(6));
  expect(feed.gaps).toBe(0);
});

it('last lines that come when the agent is back are those that are there', async () => {
  const { feed, tell, away, opened, lost, texts, notes } = followed();

  lost();
  opened();
  away();
  expect(feed.state).toBe('away');
  await vi.advanceTimersByTimeAsync(60_000);
  tell(1, 2, 3, 4, 5, 6);

  expect(texts()).toEqual(upTo(6));
  expect([feed.state, feed.gaps, notes().length]).toEqual(['live', 0, 1]);
});

it('an agent that goes offline while its log is read leaves a gap', () => {
  const { feed, away, notes } = followed();

  away();

  expect([feed.state, feed.gaps]).toEqual(['away', 1]);
  expect(notes()).toEqual([m.wentOffline()]);
});

it('new lines are shown at once, and that some may be missing', () => {
  const { feed, tell, opened, lost, texts, notes } = followed();

  lost();
  opened();
  tell(7);

  expect(texts()).toEqual([...upTo(5), 'line 7']);
  expect([feed.gaps, notes().length]).toEqual([1, 1]);
});

it('a connection that is lost again within the last lines tells them again', () => {
  const { feed, tell, opened, lost, texts, notes } = followed();

  for (const some of [[], [1, 2], [1, 2, 3, 4, 5]]) {
    lost();
    opened();
    tell(...some);
  }
  tell(6);

  expect(texts()).toEqual(upTo(6));
  expect([feed.gaps, notes().length]).toEqual([0, 1]);
});

it('a line without a time that is the same as an old one is shown when nothing follows it', async () => {
  const { feed, tell, opened, lost, texts } = followed({ timed: false });

  lost();
  opened();
  tell(1);
  await vi.advanceTimersByTimeAsync(10_000);

  expect(texts()).toEqual([...upTo(5), 'line 1']);
  expect(feed.gaps).toBe(1);
});

it('why a log was refused stays while it is opened again, until lines come or no refusal does', async () => {
  const { feed, tell, refused, away, opened } = followed();
  const shown = () => [feed.state, feed.problem?.code];
  const again = () => {
    feed.start();
    expect(shown()).toEqual(['connecting', 'path_not_allowed']);
    opened();
    expect(shown()).toEqual(['connecting', 'path_not_allowed']);
  };
  refused();

  again();
  refused();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(shown()).toEqual(['over', 'path_not_allowed']);
  again();
  tell(6);
  expect(shown()).toEqual(['live', undefined]);

  // A log without lines says nothing.
  refused();
  again();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(shown()).toEqual(['live', undefined]);
  refused();
  again();
  away();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(shown()).toEqual(['away', undefined]);
});
