// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, it, vi } from 'vitest';
import { api } from '../../../api/client';
import type { Server } from '../../../api/types';
import { press, waiting } from '../../testing';
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

function shown() {
  vi.spyOn(api, 'GET').mockReturnValue(waiting().answer);
  const view = new ServerView(server);
  const form = mount(ServerForm, { target: document.body, props: { view } });
  flushSync();
  const [name, host] = document.querySelectorAll<HTMLInputElement>('input.input');
  const save = document.querySelector<HTMLButtonElement>('button[type="submit"]');
  return { view, form, name, host, save };
}

function type(field: HTMLInputElement | undefined, text: string) {
  if (!field) throw new Error('there is no such field');
  field.value = text;
  field.dispatchEvent(new Event('input', { bubbles: true }));
  flushSync();
}

/** A button that has nothing to save keeps the focus: it is not `disabled`. */
const isOff = (button: HTMLElement | null) => button?.getAttribute('aria-disabled') === 'true';

it('what another one has changed is shown and kept, and so is what is typed', async () => {
  const { answer, end } = waiting();
  const put = vi.spyOn(api, 'PUT').mockReturnValue(answer);
  const { view, form, name, host, save } = shown();

  view.server = { ...server, tags: ['new'] };
  flushSync();
  expect(document.querySelector('.chip')?.textContent).toContain('new');
  expect(isOff(save)).toBe(true);

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

it('what is typed and taken back follows the server again', async () => {
  const { view, form, name, save } = shown();

  type(name, 'db-2');
  expect(isOff(save)).toBe(false);
  type(name, 'db-1');
  expect(isOff(save)).toBe(true);
  view.server = { ...server, name: 'db-3' };
  flushSync();
  expect(name?.value).toBe('db-3');

  await unmount(form);
});

/** A form in which a name was typed, and taken back while it is being saved. */
function takenBack() {
  const { answer, end } = waiting();
  vi.spyOn(api, 'PUT').mockReturnValue(answer);
  const all = shown();
  type(all.name, 'db-2');
  document.querySelector('form')?.requestSubmit();
  flushSync();
  type(all.name, 'db-1');
  return { ...all, end };
}

it('what is taken back while it is saved stays, and is a change', async () => {
  const { view, form, name, save, end } = takenBack();

  end({ ...server, name: 'db-2' });
  await vi.waitFor(() => expect(view.server.name).toBe('db-2'));
  flushSync();

  expect(name?.value).toBe('db-1');
  expect(isOff(save)).toBe(false);
  await unmount(form);
});

it('what is taken back while it is saved without success follows the server again', async () => {
  const { view, form, name, save, end } = takenBack();

  end(new Error('no connection'));
  await vi.waitFor(() => expect(document.querySelector('[role="alert"]')?.textContent).toMatch(/\S/));
  view.server = { ...server, name: 'db-3' };
  flushSync();

  expect(name?.value).toBe('db-3');
  expect(isOff(save)).toBe(true);
  await unmount(form);
});

it('the button that saved keeps the focus, and saves nothing more', async () => {
  const { answer, end } = waiting();
  const put = vi.spyOn(api, 'PUT').mockReturnValue(answer);
  const { view, form, name, save } = shown();
  type(name, 'db-2');

  press(save);
  end({ ...server, name: 'db-2' });
  await vi.waitFor(() => expect(view.server.name).toBe('db-2'));
  flushSync();

  expect([save?.disabled, isOff(save)]).toEqual([false, true]);
  expect(document.activeElement).toBe(save);
  press(save);
  expect(put).toHaveBeenCalledTimes(1);
  await unmount(form);
});
