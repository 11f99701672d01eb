// @vitest-environment jsdom
import { mount, unmount } from 'svelte';
import { it, vi } from 'vitest';
import type { Access, Server } from '../../../api/types';
import { Submission } from '../../../ui/form.svelte';
import { expectOneBusy, waiting } from '../../testing';
import People from './People.svelte';
import type { Means } from './words';

const server = { id: 's', name: 'db-1', owner: { id: 'a', username: 'ada' }, role: 'owner', rights: [] };
const person = (name: string) => ({
  user: { id: name, username: name },
  role: 'viewer',
  rights: [],
  grants: [
    { id: `of ${name}`, role: 'viewer', rights: [], scope: { server_id: 's', tag: null, all: false }, team: null },
  ],
});

it('the access that is being ended is busy, and the others wait', async () => {
  const ending = new Submission();
  const { answer, end } = waiting();
  const asked = vi.fn((_: Access, means: Means) => void ending.run(() => answer, means.id));
  const props = {
    server: server as unknown as Server,
    people: [person('bob'), person('eve')] as unknown as Access[],
    others: [],
    ending,
    end: asked,
    endGrant: () => undefined,
  };
  const shown = mount(People, { target: document.body, props });

  await expectOneBusy(
    () => [...document.querySelectorAll<HTMLButtonElement>('li button')],
    asked,
    () => end({}),
  );
  await unmount(shown);
});
