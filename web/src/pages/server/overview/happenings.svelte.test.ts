// @vitest-environment jsdom
import { afterEach, expect, it, vi } from 'vitest';
import { api } from '../../../api/client';
import type { Range } from '../../../charts/ranges';
import { clock } from '../../../live/clock.svelte';
import { answered } from '../../testing';
import type { ServerView } from '../view.svelte';
import { Happenings } from './happenings.svelte';

afterEach(() => vi.restoreAllMocks());

const view = { id: 's', server: { name: 'db' }, latest: null, events: [], openAlerts: [] } as unknown as ServerView;
const hour: Range = { kind: 'live', seconds: 3_600 };
const day: Range = { kind: 'live', seconds: 86_400 };

it('what happened in a range is known once it has been read, and not what happened in another one', async () => {
  const asked = vi.spyOn(api, 'GET').mockResolvedValue({ data: [], response: new Response() } as unknown as never);
  const happenings = new Happenings(view);
  const reading = happenings.load(hour, 1_000_000);
  expect(happenings.covers(hour)).toBe(false);

  await reading;

  expect(happenings.covers(hour)).toBe(true);
  // A live range is the same a moment later.
  const again = happenings.load({ ...hour }, 1_000_030);
  expect(happenings.covers({ ...hour })).toBe(true);
  await again;
  expect(happenings.covers(day)).toBe(false);
  asked.mockRejectedValue(new Error('away'));
  await happenings.load(day, 1_000_030);
  expect(happenings.failure).not.toBeNull();
  expect(happenings.covers(day)).toBe(false);
});

it('that an agent came is the same mark before and after it has been read', async () => {
  let now = 1_795_296_000_000;
  vi.spyOn(clock, 'present').mockImplementation(() => now);
  const came = (at: number) => ({ kind: 'status', status: 'online', at });
  const kept = (id: string, at: number) => ({
    id,
    server_id: 's',
    kind: 'online',
    at: new Date(at).toISOString(),
    detail: {},
  });
  let stored = [kept('e1', now + 100)];
  vi.spyOn(api, 'GET').mockImplementation(((path: string) =>
    Promise.resolve(answered(path.endsWith('/events') ? stored : []))) as never);
  let events = $state.raw([came(now)]);
  const happenings = new Happenings({
    ...view,
    get events() {
      return events;
    },
  } as unknown as ServerView);
  const ids = () => happenings.known.map((mark) => mark.id);
  const first = ids();
  expect(first).toHaveLength(1);

  now += 2_000;
  await happenings.load(hour, now / 1000);
  expect(ids()).toEqual(first);
  expect(happenings.known[0]?.at).toBe(1_795_296_000.1);

  // One that came since is shown beside it, and is itself when it has been read.
  now += 3_000;
  events = [...events, came(now)];
  const both = ids();
  expect(both).toHaveLength(2);
  stored = [kept('e2', now + 100), ...stored];
  now += 2_000;
  await happenings.load(hour, now / 1000);
  expect(ids().sort()).toEqual(both.sort());
});
