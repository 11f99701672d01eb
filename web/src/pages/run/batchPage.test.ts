// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { api } from '../../api/client';
import type { BatchResult } from '../../api/types';
import { live } from '../../live/socket.svelte';
import { router } from '../../router/router.svelte';
import { answered, press, withDialogs } from '../testing';
import BatchPage from './BatchPage.svelte';

beforeEach(() => {
  vi.useFakeTimers();
  withDialogs();
  vi.spyOn(live, 'watch').mockReturnValue({ socket: {}, stop: () => undefined } as never);
});

afterEach(() => {
  document.body.replaceChildren();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const counts = { queued: 0, running: 0, succeeded: 0, failed: 0, timed_out: 0, cancelled: 0, lost: 0, skipped: 0 };
const resultOf = (id: string, status: string, preview: string) =>
  ({ command_id: id, server_id: id, server_name: id, status, exit_code: null, preview }) as BatchResult;

/** The page of a batch with these results, which change by `turn`. */
async function pageOf(query: string, begin: BatchResult[]) {
  let results = begin;
  let finishedAt: string | null = null;
  const batch = () => ({
    id: 'x',
    command: 'uptime',
    created_at: '2026-11-21T10:00:00Z',
    finished_at: finishedAt,
    counts,
    results,
  });
  vi.spyOn(api, 'GET').mockImplementation(((path: string) => {
    if (path.includes('/batches/')) return Promise.resolve(answered(batch()));
    return path === '/api/v1/servers' ? Promise.resolve(answered([])) : new Promise(() => undefined);
  }) as never);
  router.go(`/run/x?${query}`, { keepScroll: true });
  const shown = mount(BatchPage, { target: document.querySelector('main') ?? document.body, props: { id: 'x' } });
  const settle = async (ms: number) => {
    await vi.advanceTimersByTimeAsync(ms);
    flushSync();
    await vi.advanceTimersByTimeAsync(0);
  };
  await settle(10);
  const turn = (to: BatchResult[], endedAt: string | null = null) => {
    results = to;
    finishedAt = endedAt;
    return settle(20_000);
  };
  return { shown, settle, turn };
}

it('the focus is on the name of a server again after its dialog, where its command ended under it', async () => {
  const begin = [resultOf('a', 'running', ''), resultOf('b', 'running', '')];
  const { shown, settle, turn } = await pageOf('by=output', begin);
  const name = () => document.querySelector<HTMLElement>('[data-command="a"]');
  const before = name();
  before?.focus();
  before?.click();
  await settle(10);
  const close = document.querySelector<HTMLElement>('dialog footer button');
  close?.focus();
  expect(document.activeElement).toBe(close);

  await turn([resultOf('a', 'succeeded', 'up'), resultOf('b', 'running', '')]);
  expect(before?.isConnected).toBe(false);
  close?.click();
  await settle(10);

  expect(document.querySelector('dialog')).toBeNull();
  expect(document.activeElement).toBe(name());
  expect(name()).not.toBeNull();
  await unmount(shown);
});

it('the dialog of a command stays where a filter leaves it out by now, and the focus is beside it in the end', async () => {
  const begin = [resultOf('a', 'running', ''), resultOf('b', 'running', '')];
  const { shown, settle, turn } = await pageOf('status=running', begin);
  const names = () => [...document.querySelectorAll<HTMLElement>('td.server button')];
  const close = () => document.querySelector<HTMLElement>('dialog footer button');
  const [first] = names();
  press(first);
  await settle(10);
  close()?.focus();

  await turn([resultOf('a', 'succeeded', 'up'), resultOf('b', 'running', '')]);

  expect(names()).toHaveLength(1);
  expect(document.activeElement).toBe(close());
  close()?.click();
  await settle(10);
  expect(document.activeElement).toBe(names()[0]);

  press(names()[0]);
  await settle(10);
  close()?.focus();
  await turn([resultOf('a', 'succeeded', 'up'), resultOf('b', 'succeeded', 'up')]);
  close()?.click();
  await settle(10);
  expect(names()).toEqual([]);
  expect(document.activeElement?.getAttribute('aria-pressed')).toBe('true');
  await unmount(shown);
});

it('the focus is on the next server once a filter leaves one out, and on the heading in the end', async () => {
  document.body.innerHTML = '<main></main>';
  const begin = [resultOf('a', 'running', ''), resultOf('b', 'running', '')];
  const { shown, turn } = await pageOf('status=running', begin);
  const name = (id: string) => document.querySelector<HTMLElement>(`[data-command="${id}"]`);
  name('a')?.focus();

  await turn([resultOf('a', 'succeeded', 'up'), resultOf('b', 'running', '')]);
  expect(name('a')).toBeNull();
  expect(document.activeElement).toBe(name('b'));
  await turn([resultOf('a', 'succeeded', 'up'), resultOf('b', 'succeeded', 'up')]);
  expect(document.activeElement?.tagName).toBe('H1');
  await unmount(shown);
});

it('the focus is on the heading once the batch ends under its button to cancel', async () => {
  document.body.innerHTML = '<main></main>';
  const begin = [resultOf('a', 'running', '')];
  const { shown, turn } = await pageOf('', begin);
  const cancel = document.querySelector<HTMLElement>('header button');
  cancel?.focus();
  expect(document.activeElement).toBe(cancel);

  await turn([resultOf('a', 'succeeded', 'up')], '2026-11-21T10:00:09Z');

  expect(cancel?.isConnected).toBe(false);
  expect(document.activeElement?.tagName).toBe('H1');
  await unmount(shown);
});
