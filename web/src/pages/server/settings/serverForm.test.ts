// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, it, vi } from 'vitest';
import { api } from '../../../api/client';
import type { Server } from '../../../api/types';
import { waiting } from '../../testing';
import { ServerView } from '../view.svelte';
import ServerForm from './ServerForm.svelte';

afterEach(() => void vi.restoreAllMocks());

const server = {
  id: 'one',
  name: 'db-1',
  host: 'db.example.com',
  port: 22,
  description: '',
  tags: ['old'],
  role: 'owner',
  rights: [],
} as unknown as Server;

it('what another one has changed is shown and kept, and so is what is typed', async () => {
  const { answer, end } = waiting();
  vi.spyOn(api, 'GET').mockReturnValue(waiting().answer);
  const put = vi.spyOn(api, 'PUT').mockReturnValue(answer);
  const view = new ServerView(server);
  const form = mount(ServerForm, { target: document.body, props: { view } });
  flushSync();
  const [name, host] = document.querySelectorAll<HTMLInputElement>('input.input');
  const save = document.querySelector<HTMLButtonElement>('button[type="submit"]');
  const type = (field: HTMLInputElement | undefined, text: string) => {
    if (!field) throw new Error('there is no such field');
    field.value = text;
    field.dispatchEvent(new Event('input', { bubbles: true }));
    flushSync();
  };

  view.server = { ...server, tags: ['new'] };
  flushSync();
  expect(document.querySelector('.chip')?.textContent).toContain('new');
  expect(save?.disabled).toBe(true);

  type(host, 'other.example.com');
  view.server = { ...server, name: 'db-2', tags: ['new'] };
  flushSync();
  expect([name?.value, host?.value]).toEqual(['db-2', 'other.example.com']);

  document.querySelector('form')?.requestSubmit();
  flushSync();
  const path = { id: 'one' };
  expect(put.mock.calls[0]?.[1]).toEqual({ params: { path }, body: { host: 'other.example.com' } });
  type(name, 'db-3');
  end({ ...server, name: 'db-2', host: 'other.example.com', tags: ['new'] });
  await vi.waitFor(() => expect(view.server.host).toBe('other.example.com'));
  flushSync();
  expect([name?.value, host?.value]).toEqual(['db-3', 'other.example.com']);

  await unmount(form);
});
