// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import * as m from '#messages/server';
import { api } from '../../api/client';
import { live } from '../../live/socket.svelte';
import { match, router } from '../../router/router.svelte';
import { answered, press, waiting } from '../testing';
// Loaded before a test waits for it.
import './keys/ApiKeys.svelte';
import Server from './Server.svelte';

/** The paths of the sockets that are open. */
const open: string[] = [];

beforeEach(() => {
  open.length = 0;
  vi.stubGlobal('scrollTo', () => undefined);
  vi.spyOn(live, 'watch').mockImplementation(((path: string) => {
    open.push(path);
    return { socket: {}, stop: () => void open.splice(open.indexOf(path), 1) };
  }) as never);
});

afterEach(() => {
  document.body.replaceChildren();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const serverOf = (name: string) => ({ id: name, name, status: 'offline', role: 'owner', rights: [], tags: [] });

/** The page of the server in the address. Each question for one waits until the test answers it. */
function pageOf(name: string) {
  const asked: { id: string; end: (data: unknown) => void }[] = [];
  vi.spyOn(api, 'GET').mockImplementation(((path: string, init: { params: { path: { id: string } } }) => {
    if (path === '/api/v1/servers') return Promise.resolve(answered(['alpha', 'beta', 'gamma'].map(serverOf)));
    if (path !== '/api/v1/servers/{id}') return Promise.resolve(answered([]));
    const { answer, end } = waiting();
    asked.push({ id: init.params.path.id, end });
    return answer;
  }) as never);
  router.go(`/servers/${name}/keys`, { keepScroll: true });
  const props = {
    get id() {
      return match('/servers/:id/:tab', router.path)?.id ?? '';
    },
    tab: 'keys',
  };
  const shown = mount(Server, { target: document.body, props });
  flushSync();
  const answer = (index: number, data: unknown = serverOf(asked[index]?.id ?? '')) => asked[index]?.end(data);
  return { shown, asked: () => asked.map(({ id }) => id), answer };
}

/** What can be done with the server whose head is shown. */
const actions = () => document.querySelector<HTMLElement>('.acts');
const title = () => document.querySelector('h1')?.textContent;
const keys = () => document.querySelector('.body .stack');

it('the way to the next server keeps the focus, and nothing but the head is shown of the one before', async () => {
  const { shown, asked, answer } = pageOf('alpha');
  answer(0);
  await vi.waitFor(() => expect(keys()).not.toBeNull());
  const next = document.querySelector<HTMLElement>(`[aria-label="${m.nextServer()}"]`);

  press(next);
  await vi.waitFor(() => expect(asked()).toEqual(['alpha', 'beta']));
  expect(title()).toBe('alpha');
  expect(keys()).toBeNull();
  expect(actions()?.inert).toBe(true);
  expect(open).toContain('/ws/metrics/alpha');
  expect(document.activeElement).toBe(next);
  press(next);
  await vi.waitFor(() => expect(asked()).toEqual(['alpha', 'beta', 'gamma']));
  answer(2);

  await vi.waitFor(() => expect(title()).toBe('gamma'));
  await vi.waitFor(() => expect(keys()).not.toBeNull());
  expect(document.activeElement).toBe(next);
  expect(actions()?.inert).toBe(false);
  answer(1);
  await new Promise((done) => setTimeout(done));
  expect(title()).toBe('gamma');
  expect(open.filter((path) => path.startsWith('/ws/metrics/'))).toEqual(['/ws/metrics/gamma']);
  await unmount(shown);
  expect(open).toEqual([]);
});

it('a server that somebody comes back to before the next one was there is shown at once', async () => {
  const { shown, asked, answer } = pageOf('alpha');
  answer(0);
  await vi.waitFor(() => expect(keys()).not.toBeNull());
  router.go('/servers/beta/keys', { keepScroll: true });
  flushSync();
  expect(keys()).toBeNull();

  router.go('/servers/alpha/keys', { keepScroll: true });
  flushSync();
  await vi.waitFor(() => expect(keys()).not.toBeNull());

  answer(1);
  await new Promise((done) => setTimeout(done));
  expect([title(), asked()]).toEqual(['alpha', ['alpha', 'beta']]);
  await unmount(shown);
});

it('what went wrong, and the focus on its button, stay until there is an answer', async () => {
  const { shown, asked, answer } = pageOf('alpha');
  const again = () => document.querySelector<HTMLElement>('[role="alert"] button');
  answer(0, new TypeError('network'));
  await vi.waitFor(() => expect(again()).not.toBeNull());
  const button = again();

  press(button);
  expect(asked()).toEqual(['alpha', 'alpha']);
  expect(document.activeElement).toBe(button);
  answer(1);

  await vi.waitFor(() => expect(title()).toBe('alpha'));
  expect(again()).toBeNull();
  await unmount(shown);
});

it('what went wrong with one server is not said of the next', async () => {
  const { shown, answer } = pageOf('alpha');
  answer(0, new TypeError('network'));
  await vi.waitFor(() => expect(document.querySelector('[role="alert"]')).not.toBeNull());

  router.go('/servers/beta/keys', { keepScroll: true });
  flushSync();

  expect(document.querySelector('[role="alert"]')).toBeNull();
  await unmount(shown);
});
