// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import * as m from '#messages/overview';
import { api } from '../../api/client';
import { Failure } from '../../api/failure';
import type { Snapshot } from '../../api/types';
import { answered } from '../testing';
import type { ServerView } from '../server/view.svelte';
import FirstLook from './FirstLook.svelte';

// There is nothing to draw on in jsdom: a chart is its title.
vi.mock('../../charts/Chart.svelte', () => ({
  default: (anchor: Comment, { title }: { title: string }) => anchor.before(title),
}));

beforeEach(() => void vi.useFakeTimers());

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

it('charts that are there stay when they cannot be read again', async () => {
  const asked = vi.spyOn(api, 'GET').mockResolvedValueOnce(answered({ names: [] }));
  asked.mockRejectedValue(Failure.unreachable());
  let measured: (sample: Snapshot) => void = () => undefined;
  const view = {
    id: 's',
    status: 'online',
    server: { agent: null },
    latest: null,
    can: () => false,
    onSample: (listener: typeof measured) => {
      measured = listener;
      return () => undefined;
    },
  } as unknown as ServerView;
  const shown = mount(FirstLook, { target: document.body, props: { view } });
  const says = (text: string) => document.body.textContent?.includes(text);
  await vi.advanceTimersByTimeAsync(0);
  flushSync();
  expect(says(m.cpu())).toBe(true);

  // What is missing of a new server's history is read again a little later.
  measured({ timestamp: new Date().toISOString(), network: [], disk_io: [], disk_usage: [] } as unknown as Snapshot);
  await vi.advanceTimersByTimeAsync(10_000);
  flushSync();

  expect([says(m.cpu()), says(Failure.unreachable().message)]).toEqual([true, true]);
  await unmount(shown);
});
