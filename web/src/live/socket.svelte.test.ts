// @vitest-environment jsdom
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { session } from '../session/session.svelte';
import { live, type Options } from './socket.svelte';

class FakeWebSocket {
  static readonly OPEN = 1;
  static made: FakeWebSocket[] = [];
  readyState = 1;
  closedWith: number | null = null;
  readonly sent: string[] = [];
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: string }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;

  constructor() {
    FakeWebSocket.made.push(this);
  }

  send(text: string): void {
    this.sent.push(text);
  }

  close(code: number): void {
    this.closedWith = code;
  }
}

const IDLE_MS = 10 * 60_000;
const TURN_MS = 15_000;
const PONG = { data: '{"type":"pong"}' };

beforeEach(() => {
  vi.useFakeTimers();
  FakeWebSocket.made = [];
  vi.stubGlobal('WebSocket', FakeWebSocket);
  vi.spyOn(session, 'token').mockResolvedValue('token');
});

afterEach(() => {
  live.reset();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** A socket that is on its way, and the codes with which it closed. */
async function dialled(options: Options = {}) {
  const closed: number[] = [];
  const watcher = { message: () => undefined, closed: (code: number) => closed.push(code) };
  const { socket } = live.watch('/ws/x', watcher, options);
  await vi.advanceTimersByTimeAsync(0);
  return { socket, closed };
}

/** Looks after a socket as often as the page does, for so long. */
async function tended(socket: { tend(now: number): void }, forMs: number) {
  for (let passed = 0; passed < forMs; passed += TURN_MS) {
    await vi.advanceTimersByTimeAsync(TURN_MS);
    socket.tend(Date.now());
  }
}

/** An open socket, and the codes with which it closed. */
async function opened(once: boolean) {
  const { closed } = await dialled({ once });
  FakeWebSocket.made[0]?.onopen?.();
  return closed;
}

it('is not replaced when the tab is seen again, if it is opened once', async () => {
  const closed = await opened(true);

  await vi.advanceTimersByTimeAsync(IDLE_MS);
  document.dispatchEvent(new Event('visibilitychange'));
  window.dispatchEvent(new Event('online'));
  live.retry();
  await vi.advanceTimersByTimeAsync(0);

  expect(FakeWebSocket.made.map((socket) => socket.closedWith)).toEqual([null]);
  expect(closed).toEqual([]);
});

it('is replaced when the tab is seen again after a long silence', async () => {
  await opened(false);

  await vi.advanceTimersByTimeAsync(IDLE_MS);
  document.dispatchEvent(new Event('visibilitychange'));
  await vi.advanceTimersByTimeAsync(0);

  expect(FakeWebSocket.made.length).toBeGreaterThan(1);
});

it('is lost with a page from the cache of the browser, and what was open on it is kept', async () => {
  const closed = await opened(true);

  window.dispatchEvent(Object.assign(new Event('pageshow'), { persisted: true }));
  await vi.advanceTimersByTimeAsync(0);

  expect(FakeWebSocket.made.map((socket) => socket.closedWith)).toEqual([4000]);
  expect(closed).toEqual([1006]);
});

it('a socket that has nothing to say is asked for a sign of life, and stays while it gives one', async () => {
  await opened(false);
  const [socket] = FakeWebSocket.made;
  const tended = async (afterMs: number) => {
    await vi.advanceTimersByTimeAsync(afterMs);
    document.dispatchEvent(new Event('visibilitychange'));
    await vi.advanceTimersByTimeAsync(0);
  };

  await tended(20_000);
  expect(socket?.sent).toEqual([]);
  for (let turn = 1; turn <= 10; turn += 1) {
    await tended(30_000);
    expect(socket?.sent).toEqual(Array.from({ length: turn }, () => '{"type":"ping"}'));
    socket?.onmessage?.(PONG);
  }
  expect(FakeWebSocket.made).toHaveLength(1);

  // It is replaced when it gives none.
  await tended(91_000);
  expect(FakeWebSocket.made).toHaveLength(2);
});

it('one that does not open is lost, and tried again', async () => {
  const { socket, closed } = await dialled();

  await vi.advanceTimersByTimeAsync(14_000);
  expect([socket.state, socket.lostAt]).toEqual(['connecting', null]);
  await vi.advanceTimersByTimeAsync(2_000);

  expect(closed).toEqual([1006]);
  expect(live.lostAt).not.toBeNull();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(FakeWebSocket.made).toHaveLength(2);
  expect(FakeWebSocket.made[0]?.closedWith).not.toBeNull();
  // The one that opens stays.
  FakeWebSocket.made[1]?.onopen?.();
  await vi.advanceTimersByTimeAsync(20_000);
  expect([socket.state, socket.lostAt, FakeWebSocket.made.length]).toEqual(['open', null, 2]);
});

it('one that does not open is tried again when somebody asks, but for one that is opened once', async () => {
  const { socket } = await dialled();

  live.retry();
  await vi.advanceTimersByTimeAsync(2_000);
  live.retry();
  await vi.advanceTimersByTimeAsync(0);
  expect(FakeWebSocket.made).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(2_000);
  live.retry();
  await vi.advanceTimersByTimeAsync(0);
  expect(FakeWebSocket.made).toHaveLength(2);
  expect(socket.lostAt).not.toBeNull();

  live.reset();
  FakeWebSocket.made = [];
  const { closed } = await dialled({ once: true });
  await vi.advanceTimersByTimeAsync(4_000);
  live.retry();
  await vi.advanceTimersByTimeAsync(0);
  expect(FakeWebSocket.made).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(12_000);
  expect(closed).toEqual([1006]);
});

it('is replaced, and shown as lost, when it was asked for a sign of life and gave none', async () => {
  const { socket } = await dialled({ whileHidden: true });
  FakeWebSocket.made[0]?.onopen?.();

  await tended(socket, 90_000);
  expect([FakeWebSocket.made.length, socket.lostAt]).toEqual([1, null]);
  await tended(socket, 15_000);

  expect(FakeWebSocket.made).toHaveLength(2);
  expect(socket.lostAt).not.toBeNull();
});

it('a sleep of the machine is no silence of the service', async () => {
  const { socket } = await dialled({ whileHidden: true });
  const [made] = FakeWebSocket.made;
  made?.onopen?.();
  for (let turn = 0; turn < 3; turn += 1) {
    await tended(socket, 30_000);
    made?.onmessage?.(PONG);
  }
  await tended(socket, 30_000);
  expect(made?.sent).toHaveLength(4);

  // What it was answered last is heard a moment after it woke.
  await vi.advanceTimersByTimeAsync(IDLE_MS);
  socket.tend(Date.now());
  made?.onmessage?.(PONG);
  await tended(socket, 15_000);

  expect(FakeWebSocket.made).toHaveLength(1);
});

it('one that is opened once is lost when it gave signs of life before and gives none any more', async () => {
  const { socket, closed } = await dialled({ once: true });
  const [made] = FakeWebSocket.made;
  made?.onopen?.();
  // An older service knows none.
  await tended(socket, IDLE_MS);
  expect([made?.closedWith, closed]).toEqual([null, []]);

  made?.onmessage?.(PONG);
  await tended(socket, 90_000);
  expect(closed).toEqual([]);
  await tended(socket, 15_000);

  // What was open on it is kept.
  expect([made?.closedWith, closed]).toEqual([4000, [1006]]);
  expect(FakeWebSocket.made).toHaveLength(1);
});

it('is asked for a sign of life in a hidden tab too', async () => {
  vi.resetModules();
  vi.spyOn((await import('../session/session.svelte')).session, 'token').mockResolvedValue('token');
  const fresh = (await import('./socket.svelte')).live;
  vi.spyOn(document, 'hidden', 'get').mockReturnValue(true);
  fresh.watch('/ws/x', { message: () => undefined }, { whileHidden: true });
  await vi.advanceTimersByTimeAsync(0);
  FakeWebSocket.made[0]?.onopen?.();

  await vi.advanceTimersByTimeAsync(30_000);

  expect(FakeWebSocket.made[0]?.sent).toEqual(['{"type":"ping"}']);
  fresh.reset();
});
