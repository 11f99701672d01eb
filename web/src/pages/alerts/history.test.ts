// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, it, vi } from 'vitest';
import { api } from '../../api/client';
import { alerts } from '../../live/alerts.svelte';
import { router } from '../../router/router.svelte';
import { answered, waiting } from '../testing';
import History from './History.svelte';

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

/** Tells that these alerts ended while the socket was away, to anyone who listens by then. */
function listening() {
  const listeners: ((ids: ReadonlySet<string>) => void)[] = [];
  vi.spyOn(alerts, 'onGone').mockImplementation((listener) => {
    listeners.push(listener);
    return () => listeners.length > 0;
  });
  return (...ids: string[]) => {
    for (const listener of listeners) listener(new Set(ids));
  };
}

it('the list is read again when one of it ended while the socket was away', async () => {
  const tell = listening();
  const asked = vi.spyOn(api, 'GET').mockResolvedValue(answered([]));
  const at = '2026-11-21T03:00:00Z';
  const open = { id: 'a', server_id: 's', status: 'active', severity: 'info', metric_type: 'cpu', triggered_at: at };
  asked.mockResolvedValueOnce(answered([open]));
  const shown = mount(History, { target: document.body });
  flushSync();
  await vi.waitFor(() => expect(document.querySelector('table')).not.toBeNull());
  asked.mockClear();

  tell('b');
  expect(asked).not.toHaveBeenCalled();
  tell('a', 'b');

  expect(asked).toHaveBeenCalledTimes(1);
  await vi.waitFor(() => expect(document.querySelector('table')).toBeNull());
  await unmount(shown);
});

it('the list stays until the answer to another filter is there', async () => {
  const at = '2026-11-21T03:00:00Z';
  const open = { id: 'a', server_id: 's', status: 'active', severity: 'info', metric_type: 'cpu', triggered_at: at };
  const { answer, end } = waiting();
  const asked = vi
    .spyOn(api, 'GET')
    .mockResolvedValueOnce(answered([open]))
    .mockReturnValueOnce(answer);
  const shown = mount(History, { target: document.body });
  flushSync();
  await vi.waitFor(() => expect(document.querySelector('table')).not.toBeNull());
  const table = document.querySelector('table');

  router.set({ status: 'acknowledged' });
  flushSync();
  expect(asked).toHaveBeenCalledTimes(2);
  expect(document.querySelector('table')).toBe(table);
  end([]);

  await vi.waitFor(() => expect(document.querySelector('table')).toBeNull());
  expect(document.querySelector('.empty')).not.toBeNull();
  await unmount(shown);
  router.set({ status: null });
});

it('the list of the filter before does not stand under a filter that could not be read', async () => {
  const at = '2026-11-21T03:00:00Z';
  const open = { id: 'a', server_id: 's', status: 'active', severity: 'info', metric_type: 'cpu', triggered_at: at };
  const { answer, end } = waiting();
  vi.spyOn(api, 'GET')
    .mockResolvedValueOnce(answered([open]))
    .mockReturnValueOnce(answer);
  const shown = mount(History, { target: document.body });
  flushSync();
  await vi.waitFor(() => expect(document.querySelector('table')).not.toBeNull());

  router.set({ status: 'acknowledged' });
  flushSync();
  end(new TypeError('network'));

  await vi.waitFor(() => expect(document.querySelector('[role="alert"]')).not.toBeNull());
  expect(document.querySelector('table')).toBeNull();
  await unmount(shown);
  router.set({ status: null });
});

it('an alert that ended while the socket was away is read again', async () => {
  // What draws its charts asks for it when it is loaded.
  vi.stubGlobal('matchMedia', () => new EventTarget());
  const { default: AlertPage } = await import('./AlertPage.svelte');
  const tell = listening();
  const asked = vi.spyOn(api, 'GET').mockReturnValue(new Promise(() => undefined) as never);
  const shown = mount(AlertPage, { target: document.body, props: { id: 'a' } });
  flushSync();
  expect(asked).toHaveBeenCalledTimes(1);

  tell('b');
  expect(asked).toHaveBeenCalledTimes(1);
  tell('a');

  expect(asked).toHaveBeenCalledTimes(2);
  await unmount(shown);
});
