// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { expect, it, vi } from 'vitest';
import type { Access, Server } from '../../../api/types';
import { Submission } from '../../../ui/form.svelte';
import { expectOneBusy, press, statesOf, waiting } from '../../testing';
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

it("of a team's grant, the button of the member that was pressed is busy alone", () => {
  const ending = new Submission();
  const ofTeam = (name: string) => {
    const [means] = person(name).grants;
    return { ...person(name), grants: [{ ...means, id: 'g', team: { id: 't', name: 'ops' } }] };
  };
  const props = {
    server: server as unknown as Server,
    people: [ofTeam('bob'), ofTeam('eve')] as unknown as Access[],
    others: [],
    ending,
    end: (_: Access, means: Means) => void ending.run(() => waiting().answer, means.id),
    endGrant: () => undefined,
  };
  const shown = mount(People, { target: document.body, props });
  flushSync();
  const buttons = [...document.querySelectorAll<HTMLButtonElement>('li button')];

  press(buttons[1]);

  expect(statesOf(buttons)).toEqual(['disabled', 'busy']);
  return unmount(shown);
});
