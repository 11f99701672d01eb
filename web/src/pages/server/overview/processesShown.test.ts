// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { api } from '../../../api/client';
import { Failure } from '../../../api/failure';
import { ChartGroup } from '../../../charts/group.svelte';
import ProcessesTile from '../../add-server/ProcessesTile.svelte';
import { answered } from '../../testing';
import type { ServerView } from '../view.svelte';
import Processes from './Processes.svelte';

beforeEach(() => void vi.useFakeTimers());

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const nothing = () => undefined;
const view = { id: 's', status: 'online', can: () => true, server: {} } as unknown as ServerView;
const target = document.body;
const list = [{ pid: 1, name: 'postgres', user: 'db', cpu_percent: 3, memory_bytes: 1_000 }];
const found = () => answered({ timestamp: new Date().toISOString(), by_cpu: list, by_memory: list });

/** A list of processes, of which every attempt to renew it fails. */
async function shown(show: () => Record<string, unknown>) {
  const asked = vi.spyOn(api, 'GET').mockResolvedValueOnce(found()).mockRejectedValue(Failure.unreachable());
  const mounted = show();
  const wait = async (ms: number) => {
    flushSync();
    await vi.advanceTimersByTimeAsync(ms);
    flushSync();
  };
  await wait(0);
  expect(target.textContent).toContain('postgres');
  await wait(30_000);
  expect(asked.mock.calls.length).toBeGreaterThan(1);
  return { wait, leave: () => unmount(mounted) };
}

const says = (text: string) => target.textContent?.includes(text);
const failure = Failure.unreachable().message;

it('the list of now stays when it cannot be renewed, and one of another time says that it failed', async () => {
  const group = new ChartGroup(nothing, nothing);
  const { wait, leave } = await shown(() => mount(Processes, { target, props: { view, group } }));
  expect([says('postgres'), says(failure)]).toEqual([true, false]);

  group.pinned = Date.now() / 1000 - 3_600;
  flushSync();
  expect(says(failure)).toBe(false);
  await wait(1_000);

  expect([says('postgres'), says(failure)]).toEqual([false, true]);
  await leave();
});

it('a new server keeps its list of processes when it cannot be renewed', async () => {
  const { leave } = await shown(() => mount(ProcessesTile, { target, props: { view } }));

  expect([says('postgres'), says(failure)]).toEqual([true, false]);
  await leave();
});
