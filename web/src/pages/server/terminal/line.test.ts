// @vitest-environment jsdom
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { proofFor } from '../../../api/client';
import { live, type Message, type SocketState } from '../../../live/socket.svelte';
import { ticketOf } from '../../../session/tickets';
import { Line, type Loss } from './line';

vi.mock(import('../../../api/client'), async (original) => ({ ...(await original()), proofFor: vi.fn() }));

type Watcher = Parameters<typeof live.watch>[1];

interface Attempt {
  query: string;
  watcher: Watcher;
  sent: unknown[];
  isParted: boolean;
  state: SocketState;
}

const KEPT = { type: 'kept', data: { terminal_id: 'one', secret: 'secret', seconds: 120 } };
const LATE_MS = 120_000;
const output = (data: string, offset: number): Message => ({ type: 'output', data: { data, offset } });
const error = (code: string): Message => ({ type: 'error', data: { code, detail: code } });

let attempts: Attempt[];
let lines: Line[];

beforeEach(() => {
  vi.useFakeTimers();
  sessionStorage.clear();
  attempts = [];
  lines = [];
  vi.mocked(proofFor).mockReset().mockResolvedValue('unasked');
  vi.spyOn(live, 'watch').mockImplementation((path, watcher, options) => {
    expect(options).toEqual({ once: true });
    const query = path.slice(path.indexOf('rows=24') + 8);
    const attempt: Attempt = { query, watcher, sent: [], isParted: false, state: 'connecting' };
    attempts.push(attempt);
    const socket = {
      backlog: 0,
      send: (message: unknown) => attempt.sent.push(message) > 0,
      part: () => (attempt.isParted = true),
      get state() {
        return attempt.state;
      },
    };
    return { socket, stop: () => undefined } as unknown as ReturnType<typeof live.watch>;
  });
});

afterEach(() => {
  for (const line of lines) line.close();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** A line to a terminal, and what it said. */
function made() {
  const told: string[] = [];
  const line = new Line('web-1', () => ({ cols: 80, rows: 24 }), {
    open: () => told.push('open'),
    waits: () => told.push('waits'),
    gone: (why: Loss) => told.push(`gone: ${why}`),
    message: ({ type, data }) => told.push(type === 'error' ? `error: ${(data as { code: string }).code}` : type),
  });
  lines.push(line);
  return { line, told };
}

/** A new terminal that has written `$ `. */
function opened() {
  const { line, told } = made();
  line.open(null);
  last().watcher.opened?.();
  last().watcher.message(KEPT);
  last().watcher.message(output('$ ', 0));
  told.splice(0);
  return { line, told };
}

const last = () => attempts.at(-1) as Attempt;

/** Waits for the next attempt. */
async function next(): Promise<Attempt> {
  const count = attempts.length;
  await vi.advanceTimersByTimeAsync(6_000);
  expect(attempts.length).toBe(count + 1);
  return last();
}

it('comes back after a loss, and says what it has', async () => {
  const { told } = opened();

  last().watcher.closed?.(1006);
  const again = await next();
  again.watcher.opened?.();
  again.watcher.message(KEPT);
  again.watcher.message(output('ä', 2));
  again.watcher.closed?.(1006);
  const third = await next();
  third.watcher.opened?.();

  expect(again.query).toBe('resume=true');
  expect(again.sent).toEqual([{ type: 'resume', data: { terminal_id: 'one', secret: 'secret', offset: 2 } }]);
  expect(third.sent).toEqual([{ type: 'resume', data: { terminal_id: 'one', secret: 'secret', offset: 4 } }]);
  expect(told).toEqual(['waits', 'open', 'output', 'waits']);
});

it.each(['agent_disconnected', 'agent_offline', 'agent_timeout', 'busy', 'terminal_detached'])(
  'tries again after %s, until it hears that the terminal is gone',
  async (code) => {
    const { told } = opened();

    for (let count = 0; count < 2; count += 1) {
      last().watcher.message(error(code));
      last().watcher.closed?.(1000);
      (await next()).watcher.opened?.();
    }
    last().watcher.message(error('not_found'));
    last().watcher.closed?.(1000);
    await vi.advanceTimersByTimeAsync(LATE_MS);

    expect(told).toEqual(['waits', 'waits', 'error: not_found']);
    expect(attempts.length).toBe(3);
    expect(ticketOf('web-1')).toBeNull();
  },
);

it('ends with such an error while there is nothing to come back to', () => {
  const { line, told } = made();
  line.open(null);
  last().watcher.opened?.();

  last().watcher.message(error('agent_offline'));

  expect(told).toEqual(['open', 'error: agent_offline']);
});

it('gives up when the terminal is not kept any longer', async () => {
  const { told } = opened();

  last().watcher.closed?.(1006);
  for (let waited = 0; waited < LATE_MS + 10_000; waited += 1_000) {
    await vi.advanceTimersByTimeAsync(1_000);
    if (!told.includes('gone: late')) last().watcher.closed?.(1006);
  }

  expect(told.at(-1)).toBe('gone: late');
  expect(ticketOf('web-1')).toBeNull();
});

it('asks for a proof when the service refuses it, also where it could not ask before and after each resume', async () => {
  const { told } = opened();
  last().watcher.closed?.(1006);
  vi.mocked(proofFor).mockRejectedValueOnce(new TypeError('offline'));
  (await next()).watcher.closed?.(1006);

  vi.mocked(proofFor).mockResolvedValue('given');
  (await next()).watcher.closed?.(1006);
  await vi.advanceTimersByTimeAsync(0);
  expect(vi.mocked(proofFor)).toHaveBeenCalledTimes(2);
  expect(attempts.length).toBe(4);
  last().watcher.opened?.();
  last().watcher.message(KEPT);
  last().watcher.closed?.(1006);
  (await next()).watcher.closed?.(1006);
  await vi.advanceTimersByTimeAsync(0);

  expect(vi.mocked(proofFor)).toHaveBeenCalledTimes(3);
  expect(told.filter((what) => what === 'open')).toHaveLength(1);
});

it('ends when the proof is refused', async () => {
  const { told } = opened();
  last().watcher.closed?.(1006);
  vi.mocked(proofFor).mockResolvedValue('refused');

  (await next()).watcher.closed?.(1006);
  await vi.advanceTimersByTimeAsync(0);

  expect(told.at(-1)).toBe('gone: notProved');
});

it('leaves a connection that has no network, and comes back with it', async () => {
  const { told } = opened();

  window.dispatchEvent(new Event('offline'));
  expect(last().isParted).toBe(true);
  window.dispatchEvent(new Event('online'));

  expect(attempts.map(({ query }) => query)).toEqual(['keep=true', 'resume=true']);
  expect(told).toEqual(['waits']);
});

it('does not wait for an attempt that hangs when the network is back', async () => {
  opened();
  last().watcher.closed?.(1006);
  await next();
  expect(attempts).toHaveLength(2);

  window.dispatchEvent(new Event('online'));
  expect(attempts).toHaveLength(3);

  // The answer to what it said is on its way.
  last().state = 'open';
  last().watcher.opened?.();
  window.dispatchEvent(new Event('online'));
  expect(attempts).toHaveLength(3);
});

it('remembers how much the page has drawn, and for how long the terminal waits', async () => {
  opened();
  last().watcher.message(output('1234567890', 2));

  window.dispatchEvent(new Event('pagehide'));

  const ticket = ticketOf('web-1');
  expect(ticket).toEqual({ terminalId: 'one', secret: 'secret', bytes: 12, until: Date.now() + LATE_MS });

  // The next page has drawn less at first, and answers nothing twice.
  const { line } = made();
  line.resume(ticket as NonNullable<typeof ticket>);
  last().watcher.opened?.();
  last().watcher.message(KEPT);
  last().watcher.message(output('$ ', 0));
  window.dispatchEvent(new Event('pagehide'));

  expect(last().sent).toEqual([{ type: 'resume', data: { terminal_id: 'one', secret: 'secret', offset: 0 } }]);
  expect(ticketOf('web-1')?.bytes).toBe(12);
});
