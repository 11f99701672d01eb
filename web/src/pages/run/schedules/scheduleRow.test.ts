// @vitest-environment jsdom
import { mount, unmount } from 'svelte';
import { afterEach, expect, it, vi } from 'vitest';
import { api } from '../../../api/client';
import { Failure } from '../../../api/failure';
import type { ScheduleSummary } from '../../../api/types';
import { confirm } from '../../../ui/confirm.svelte';
import { press, statesOf, waiting } from '../../testing';
import ScheduleRow from './ScheduleRow.svelte';

afterEach(() => void vi.restoreAllMocks());

const schedule = {
  id: 'one',
  name: 'Nightly backup',
  command: 'backup',
  cron: '0 3 * * *',
  time_zone: 'UTC',
  enabled: true,
  signed: false,
  next_at: '2030-01-01T03:00:00Z',
  missed: 0,
  missed_at: null,
} as unknown as ScheduleSummary;

it('of pause and delete the one that was pressed is busy and keeps the focus', async () => {
  const asked = vi.spyOn(confirm, 'ask').mockResolvedValue(true);
  const [turning, removing] = [waiting(), waiting()];
  const put = vi.spyOn(api, 'PUT').mockReturnValue(turning.answer);
  vi.spyOn(api, 'DELETE').mockReturnValue(removing.answer);
  const props = { schedule, last: undefined, isKnown: true, changed: async () => undefined };
  const shown = mount(ScheduleRow, { target: document.body, props });
  const buttons = [...document.querySelectorAll('button')];
  const [pause, remove] = buttons;

  press(pause);
  press(pause);
  expect(statesOf(buttons)).toEqual(['busy', 'disabled']);
  expect(put).toHaveBeenCalledTimes(1);
  turning.end({});
  await vi.waitFor(() => expect(statesOf(buttons)).toEqual(['ready', 'ready']));
  expect(document.activeElement).toBe(pause);

  press(remove);
  await vi.waitFor(() => expect(statesOf(buttons)).toEqual(['disabled', 'busy']));
  press(remove);
  expect(asked).toHaveBeenCalledTimes(1);
  removing.end(Failure.unreachable());
  await vi.waitFor(() => expect(statesOf(buttons)).toEqual(['ready', 'ready']));
  expect(document.activeElement).toBe(remove);
  await unmount(shown);
});
