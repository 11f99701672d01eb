// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, it, vi } from 'vitest';
import * as m from '#messages/channels';
import { api } from '../../../api/client';
import { clock } from '../../../live/clock.svelte';
import Deliveries from './Deliveries.svelte';

afterEach(() => void vi.restoreAllMocks());

const delivery = (id: string) => ({
  id,
  channel_name: id,
  subject: 'CPU is high',
  event: 'fired',
  status: 'pending',
  attempts: 1,
  created_at: '2026-11-21T10:00:00Z',
});

it('the next page is shown, though the list is due to be read again before it is there', async () => {
  const ends: (() => void)[] = [];
  const get = vi.spyOn(api, 'GET').mockImplementation(
    ((_: string, { params }: { params: { query: { offset: number } } }) =>
      new Promise((resolve) => {
        const { offset } = params.query;
        const data = offset === 0 ? [delivery('one'), delivery('two')] : [delivery('three')];
        const response = new Response(null, { headers: { 'X-Total-Count': '3' } });
        ends.push(() => resolve({ data, response }));
      })) as never,
  );
  const shown = mount(Deliveries, { target: document.body, props: { channels: [], asked: 0 } });
  const rows = () => [...document.querySelectorAll('td.channel')].map((cell) => cell.textContent);
  flushSync();
  ends[0]?.();
  await vi.waitFor(() => expect(rows()).toEqual(['one', 'two']));

  [...document.querySelectorAll('button')].find((button) => button.textContent?.includes(m.showMore()))?.click();
  clock.now += 11_000;
  flushSync();
  expect(get).toHaveBeenCalledTimes(2);
  ends[1]?.();
  await vi.waitFor(() => expect(rows()).toEqual(['one', 'two', 'three']));
  flushSync();

  expect(get).toHaveBeenCalledTimes(3);
  await unmount(shown);
});
