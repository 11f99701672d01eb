// @vitest-environment jsdom
import { mount, unmount } from 'svelte';
import { afterEach, expect, it, vi } from 'vitest';
import { api } from '../../../api/client';
import { confirm } from '../../../ui/confirm.svelte';
import { answered, press, statesOf, waiting } from '../../testing';
import RolloutShown from './RolloutShown.svelte';

afterEach(() => void vi.restoreAllMocks());

const rollout = {
  id: 'one',
  version: '1.1.0',
  status: 'running',
  counts: { waiting: 1, offered: 0, updated: 0, failed: 0, refused: 0 },
  created_by: 'ada',
  created_at: '2026-11-21T10:00:00Z',
  ended_at: null,
  waves: [],
  servers: [],
  wave: 0,
  wave_since: '2026-11-21T10:00:00Z',
  pause_minutes: 0,
  max_failed: 1,
  stopped_reason: null,
};

it('of pause and cancel the one that was pressed is busy and keeps the focus', async () => {
  const asked = vi.spyOn(confirm, 'ask').mockResolvedValue(true);
  const [pausing, cancelling] = [waiting(), waiting()];
  vi.spyOn(api, 'GET').mockResolvedValue(answered(rollout));
  const post = vi.spyOn(api, 'POST').mockReturnValueOnce(pausing.answer).mockReturnValueOnce(cancelling.answer);
  const shown = mount(RolloutShown, { target: document.body, props: { id: 'one' } });
  const buttons = () => [...document.querySelectorAll('button')];
  await vi.waitFor(() => expect(statesOf(buttons())).toEqual(['ready', 'ready']));
  const [pause, cancel] = buttons();

  press(pause);
  press(pause);
  expect(statesOf(buttons())).toEqual(['busy', 'disabled']);
  pausing.end({ ...rollout, status: 'paused' });
  await vi.waitFor(() => expect(statesOf(buttons())).toEqual(['ready', 'ready']));
  expect(document.activeElement).toBe(pause);

  press(cancel);
  await vi.waitFor(() => expect(statesOf(buttons())).toEqual(['disabled', 'busy']));
  press(cancel);
  expect(asked).toHaveBeenCalledTimes(1);
  expect(post).toHaveBeenCalledTimes(2);
  expect(document.activeElement).toBe(cancel);
  cancelling.end({ ...rollout, status: 'cancelled' });
  await vi.waitFor(() => expect(buttons()).toEqual([]));
  await unmount(shown);
});
