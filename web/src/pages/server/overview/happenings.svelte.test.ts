// @vitest-environment jsdom
import { afterEach, expect, it, vi } from 'vitest';
import { api } from '../../../api/client';
import type { Range } from '../../../charts/ranges';
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
