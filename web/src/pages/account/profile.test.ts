// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, it, vi } from 'vitest';
import { api } from '../../api/client';
import type { Profile as Account } from '../../api/types';
import { session } from '../../session/session.svelte';
import { press, waiting } from '../testing';
import Profile from './Profile.svelte';

vi.hoisted(() => {
  globalThis.matchMedia = () => ({ matches: false, addEventListener: () => undefined }) as unknown as MediaQueryList;
});

afterEach(() => void vi.restoreAllMocks());

const ada = { username: 'ada', email: 'ada@exa_mple.com', full_name: 'Ada' } as unknown as Account;

function fullNameField(): HTMLInputElement {
  const field = document.querySelector<HTMLInputElement>('input[autocomplete="name"]');
  if (!field) throw new Error('there is no such field');
  return field;
}

it('only what was changed is sent: the service refuses an old address if it is sent as a new one', async () => {
  vi.spyOn(api, 'GET').mockReturnValue(waiting().answer);
  const put = vi.spyOn(api, 'PUT').mockReturnValue(waiting().answer);
  session.user = ada;
  const page = mount(Profile, { target: document.body });
  flushSync();

  const fullName = fullNameField();
  fullName.value = 'Ada Lovelace';
  fullName.dispatchEvent(new Event('input', { bubbles: true }));
  flushSync();
  document.querySelector('form')?.requestSubmit();
  flushSync();

  expect(put.mock.calls[0]?.[1]).toEqual({ body: { full_name: 'Ada Lovelace' } });
  await unmount(page);
});

it('the button that saved keeps the focus, and saves nothing more', async () => {
  vi.spyOn(api, 'GET').mockReturnValue(waiting().answer);
  const { answer, end } = waiting();
  const put = vi.spyOn(api, 'PUT').mockReturnValue(answer);
  session.user = ada;
  const page = mount(Profile, { target: document.body });
  const save = document.querySelector<HTMLButtonElement>('button[type="submit"]');
  const fullName = fullNameField();
  fullName.value = 'Ada Lovelace';
  fullName.dispatchEvent(new Event('input', { bubbles: true }));
  flushSync();

  save?.focus();
  press(save);
  end({ ...ada, full_name: 'Ada Lovelace' });
  await vi.waitFor(() => expect(session.user?.full_name).toBe('Ada Lovelace'));
  flushSync();

  expect([save?.disabled, save?.getAttribute('aria-disabled')]).toEqual([false, 'true']);
  expect(document.activeElement).toBe(save);
  press(save);
  expect(put).toHaveBeenCalledTimes(1);
  await unmount(page);
});
