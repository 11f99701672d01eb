// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { expect, it, vi } from 'vitest';
import { api } from '../../api/client';
import type { Profile as Account } from '../../api/types';
import { session } from '../../session/session.svelte';
import { waiting } from '../testing';
import Profile from './Profile.svelte';

vi.hoisted(() => {
  globalThis.matchMedia = () => ({ matches: false, addEventListener: () => undefined }) as unknown as MediaQueryList;
});

it('only what was changed is sent: the service refuses an old address if it is sent as a new one', async () => {
  vi.spyOn(api, 'GET').mockReturnValue(waiting().answer);
  const put = vi.spyOn(api, 'PUT').mockReturnValue(waiting().answer);
  session.user = { username: 'ada', email: 'ada@exa_mple.com', full_name: 'Ada' } as unknown as Account;
  const page = mount(Profile, { target: document.body });
  flushSync();

  const fullName = document.querySelector<HTMLInputElement>('input[autocomplete="name"]');
  if (!fullName) throw new Error('there is no such field');
  fullName.value = 'Ada Lovelace';
  fullName.dispatchEvent(new Event('input', { bubbles: true }));
  flushSync();
  document.querySelector('form')?.requestSubmit();
  flushSync();

  expect(put.mock.calls[0]?.[1]).toEqual({ body: { full_name: 'Ada Lovelace' } });
  await unmount(page);
});
