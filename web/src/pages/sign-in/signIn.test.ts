// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { router } from '../../router/router.svelte';
import { service } from '../../session/service.svelte';
import SignIn from './SignIn.svelte';

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('scrollTo', () => undefined);
});

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

/** The door of a service that says so after five seconds, to somebody who did something before. */
async function shown(says: object, before = () => {}) {
  vi.stubGlobal('fetch', async () => {
    await new Promise((done) => setTimeout(done, 5_000));
    return Response.json(says);
  });
  service.info = null;
  router.go('/sign-in');
  const door = mount(SignIn, { target: document.body });
  await vi.advanceTimersByTimeAsync(4_000);
  flushSync();
  expect(document.querySelector('input[type="password"]')).not.toBeNull();
  before();
  await vi.advanceTimersByTimeAsync(2_000);
  flushSync();
  return door;
}

it('a service that says late that it has no account leads to its set-up', async () => {
  const door = await shown({ needs_setup: true });

  expect(router.path).toBe('/register');
  await unmount(door);
});

it('a service that says late where one signs in too offers that', async () => {
  const door = await shown({ oidc: { name: 'Corp' } });

  expect(router.path).toBe('/sign-in');
  expect(document.body.textContent).toContain('Corp');
  await unmount(door);
});

it('a service that says late that passwords are for few takes the form from nobody who types', async () => {
  const username = () => document.querySelector<HTMLInputElement>('input[name="username"]');
  const says = { oidc: { name: 'Corp' }, password_login: 'admins' };
  const door = await shown(says, () => {
    const field = username();
    if (field) field.value = 'ada';
    field?.dispatchEvent(new Event('input', { bubbles: true }));
  });

  expect(document.body.textContent).toContain('Corp');
  expect(username()?.value).toBe('ada');
  await unmount(door);
});
