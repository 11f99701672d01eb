// @vitest-environment jsdom
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Alert } from '../api/types';
import { alerts } from './alerts.svelte';
import { live } from './socket.svelte';

type Watcher = Parameters<typeof live.watch>[1];

beforeEach(() => void vi.useFakeTimers());

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const alert = (id: string) =>
  ({ id, server_id: 's', status: 'active', severity: 'info', triggered_at: id }) as unknown as Alert;
const ids = () => alerts.unresolved.map(({ id }) => id);

/** What watches the socket of alerts, and how often it asked for the end of what the service has to say. */
function watched() {
  const ping = vi.fn();
  const watch = vi
    .spyOn(live, 'watch')
    .mockImplementation(
      () => ({ socket: { ping }, stop: () => undefined }) as unknown as ReturnType<typeof live.watch>,
    );
  const stop = alerts.watch();
  const watcher = watch.mock.calls[0]?.[1] as Watcher;
  const tell = (type: string, data?: unknown) => watcher.message({ type, data });
  return { ping, stop, open: () => watcher.opened?.(), tell };
}

it('what was open before is shown together once the service has said all of it, however slowly', () => {
  const { ping, stop, open, tell } = watched();

  open();
  expect(ping).toHaveBeenCalledTimes(1);
  tell('alert', alert('a'));
  vi.advanceTimersByTime(2_000);
  tell('alert', alert('b'));
  expect(alerts.isKnown).toBe(false);
  expect(ids()).toEqual([]);

  tell('pong');
  expect(alerts.isKnown).toBe(true);
  expect(ids()).toEqual(['b', 'a']);
  stop();
});

it('what was known stays until all is there again, and what is not named then is over', () => {
  const { ping, stop, open, tell } = watched();
  open();
  for (const id of ['a', 'b']) tell('alert', alert(id));
  tell('pong');
  // Still to be shown when the socket is lost.
  tell('alert', alert('c'));

  open();
  tell('alert', alert('b'));
  vi.advanceTimersByTime(2_000);
  expect(ids()).toEqual(['b', 'a']);
  tell('pong');
  expect(ids()).toEqual(['b']);

  tell('alerts');
  vi.advanceTimersByTime(2_000);
  expect(ids()).toEqual(['b']);
  tell('pong');
  expect(ids()).toEqual([]);
  expect(ping).toHaveBeenCalledTimes(3);
  stop();
});

it('a service that knows no ping is waited for no longer than it takes', () => {
  const { stop, open, tell } = watched();
  open();
  tell('alert', alert('a'));

  vi.advanceTimersByTime(5_000);

  expect(ids()).toEqual(['a']);
  stop();
});

it('a new alert is shown in a moment, and a sign of life changes nothing', () => {
  const { stop, open, tell } = watched();
  open();
  tell('pong');

  tell('alert', alert('a'));
  vi.advanceTimersByTime(50);
  tell('pong');

  expect(ids()).toEqual(['a']);
  stop();
});
