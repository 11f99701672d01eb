// @vitest-environment jsdom
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { session } from '../session/session.svelte';
import { live } from './socket.svelte';

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

/** An open socket, and the codes with which it closed. */
async function opened(once: boolean) {
  const closed: number[] = [];
  live.watch('/ws/x', { message: () => undefined, closed: (code) => closed.push(code) }, { once });
  await vi.advanceTimersByTimeAsync(0);
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
    socket?.onmessage?.({ data: '{"type":"pong"}' });
  }
  expect(FakeWebSocket.made).toHaveLength(1);

  // It is replaced when it gives none.
  await tended(91_000);
  expect(FakeWebSocket.made).toHaveLength(2);
});
