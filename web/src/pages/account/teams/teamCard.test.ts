// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { api } from '../../../api/client';
import type { Profile, Team } from '../../../api/types';
import { session } from '../../../session/session.svelte';
import { confirm } from '../../../ui/confirm.svelte';
import { expectOneBusy, press, statesOf, waiting } from '../../testing';
import TeamCard from './TeamCard.svelte';

const team = {
  id: 'ops',
  name: 'ops',
  created_by: { id: 'me', username: 'ada' },
  members: [
    { id: 'b', username: 'bob' },
    { id: 'e', username: 'eve' },
  ],
} as unknown as Team;
let shown: ReturnType<typeof mount>;

beforeEach(() => {
  session.user = { id: 'me', username: 'ada', is_admin: false } as unknown as Profile;
  shown = mount(TeamCard, { target: document.body, props: { team, changed: () => undefined } });
});

afterEach(async () => {
  await unmount(shown);
  session.user = null;
  vi.restoreAllMocks();
});

it('the member who is being taken out is busy, and the others wait', async () => {
  const asked = vi.spyOn(confirm, 'ask').mockResolvedValue(true);
  const { answer, end } = waiting();
  vi.spyOn(api, 'DELETE').mockReturnValue(answer);

  await expectOneBusy(
    () => [...document.querySelectorAll<HTMLButtonElement>('li button')],
    asked,
    () => end({}),
  );
});

it('the button that added somebody keeps the focus, and adds nobody without a name', async () => {
  const { answer, end } = waiting();
  const put = vi.spyOn(api, 'PUT').mockReturnValue(answer);
  const field = document.querySelector('input');
  const add = document.querySelector<HTMLButtonElement>('form button');
  if (field) field.value = 'mallory';
  field?.dispatchEvent(new Event('input', { bubbles: true }));
  flushSync();

  press(add);
  expect(statesOf([add])).toEqual(['busy']);
  end({});
  await vi.waitFor(() => expect(field?.value).toBe(''));
  flushSync();

  expect([add?.disabled, add?.getAttribute('aria-disabled')]).toEqual([false, 'true']);
  expect(document.activeElement).toBe(add);
  press(add);
  expect(put).toHaveBeenCalledTimes(1);
});
