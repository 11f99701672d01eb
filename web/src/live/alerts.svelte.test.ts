// @vitest-environment jsdom
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Alert } from '../api/types';
import { LiveAlerts } from './alerts.svelte';
import { live } from './socket.svelte';

type Watcher = Parameters<typeof live.watch>[1];

beforeEach(() => void vi.useFakeTimers());

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const alert = (id: string) =>
  ({ id, server_id: 's', status: 'active', severity: 'info', triggered_at: id }) as unknown as Alert;

/** Alerts that are watched, what the socket does, and how often it was asked for the end of what the service has to say. */
function watched() {
  const alerts = new LiveAlerts();
  const ping = vi.fn();
  const watch = vi
    .spyOn(live, 'watch')
    .mockImplementation(
      () => ({ socket: { ping }, stop: () => undefined }) as unknown as ReturnType<typeof live.watch>,
    );
  const stop = alerts.watch();
  const watcher = watch.mock.calls[0]?.[1] as Watcher;
  const tell = (type: string, data?: unknown) => watcher.message({ type, data });
  const ids = () => alerts.unresolved.map(({ id }) => id);
  return { alerts, ids, ping, stop, open: () => watcher.opened?.(), close: () => watcher.closed?.(1006), tell };
}

it('what was open before is shown together once the service has said all of it, however slowly', () => {
  const { alerts, ids, ping, stop, open, tell } = watched();

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

it('alerts of the same time stand in the order in which they were made', () => {
  const { ids, stop, open, tell } = watched();
  open();
  for (const id of ['b', 'c', 'a']) tell('alert', { ...alert(id), triggered_at: 'then' });
  tell('pong');

  expect(ids()).toEqual(['a', 'b', 'c']);
  stop();
});

it('what was known stays until all is there again, and what is not named then is over', () => {
  const { ids, ping, stop, open, tell } = watched();
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

it('what was known stays while the socket is lost before it has said all, however long', () => {
  const { ids, stop, open, close, tell } = watched();
  open();
  for (const id of ['a', 'b']) tell('alert', alert(id));
  tell('pong');

  open();
  tell('alert', alert('b'));
  close();
  vi.advanceTimersByTime(600_000);
  expect(ids()).toEqual(['b', 'a']);

  open();
  vi.advanceTimersByTime(20_000);
  expect(ids()).toEqual(['b', 'a']);
  tell('alert', alert('b'));
  tell('pong');
  expect(ids()).toEqual(['b']);
  stop();
});

it('a service that knows no ping is waited for until it has said nothing for a while', () => {
  const { alerts, ids, stop, open, tell } = watched();
  open();
  for (const id of ['a', 'b', 'c']) {
    vi.advanceTimersByTime(4_000);
    tell('alert', alert(id));
  }
  expect(alerts.isKnown).toBe(false);

  vi.advanceTimersByTime(5_000);

  expect(ids()).toEqual(['c', 'b', 'a']);
  stop();
});

it('a service that has said nothing yet is waited for longer', () => {
  const { alerts, stop, open, tell } = watched();
  open();

  vi.advanceTimersByTime(8_000);
  expect(alerts.isKnown).toBe(false);

  tell('pong');
  expect(alerts.isKnown).toBe(true);
  stop();
});

it('listeners hear what ended while the socket was away once all is there again, and of nothing else', () => {
  const { alerts, stop, open, tell } = watched();
  const gone: string[][] = [];
  alerts.onGone((ids) => gone.push([...ids]));
  open();
  for (const id of ['a', 'b', 'c']) tell('alert', alert(id));
  tell('pong');
  tell('alert', { ...alert('a'), status: 'resolved' });

  // Lost once more before all was there.
  open();
  tell('alert', alert('b'));
  open();
  tell('alert', alert('b'));
  expect(gone).toEqual([]);
  tell('pong');

  expect(gone).toEqual([['c']]);
  open();
  tell('alert', alert('b'));
  tell('pong');
  expect(gone).toHaveLength(1);
  stop();
});

it('a new alert is shown in a moment, and a sign of life changes nothing', () => {
  const { ids, stop, open, tell } = watched();
  open();
  tell('pong');

  tell('alert', alert('a'));
  vi.advanceTimersByTime(50);
  tell('pong');

  expect(ids()).toEqual(['a']);
  stop();
});
