// @vitest-environment jsdom
import { mount, unmount } from 'svelte';
import { it, vi } from 'vitest';
import type { Grant } from '../../../api/types';
import { Submission } from '../../../ui/form.svelte';
import { expectOneBusy, waiting } from '../../testing';
import GrantList from './GrantList.svelte';

const grant = (id: string) =>
  ({
    id,
    owner: { id: 'me', username: 'ada' },
    giver: null,
    subject: { user_id: id, username: id, team_id: null, team_name: null },
    role: 'viewer',
    rights: [],
    scope: { server_id: null, server_name: null, tag: null, all: true },
    created_at: '2026-11-21T10:00:00Z',
  }) as unknown as Grant;

it('the grant that is being ended is busy, and the others wait', async () => {
  const ending = new Submission();
  const { answer, end } = waiting();
  const asked = vi.fn(({ id }: Grant) => void ending.run(() => answer, id));
  const props = { grants: [grant('bob'), grant('eve')], own: 'me', ending, end: asked };
  const shown = mount(GrantList, { target: document.body, props });

  await expectOneBusy(
    () => [...document.querySelectorAll<HTMLButtonElement>('li button')],
    asked,
    () => end({}),
  );
  await unmount(shown);
});
