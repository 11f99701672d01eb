// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { api } from '../../../api/client';
import { live } from '../../../live/socket.svelte';
import { session } from '../../../session/session.svelte';
import { answered, press, withDialogs } from '../../testing';
import ApprovalPage from './ApprovalPage.svelte';
import Waiting from './Waiting.svelte';

beforeEach(() => {
  vi.useFakeTimers();
  withDialogs();
  vi.spyOn(live, 'watch').mockReturnValue({ socket: {}, stop: () => undefined } as never);
  document.body.innerHTML = '<main><h1>Run</h1></main>';
});

afterEach(() => {
  document.body.replaceChildren();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const approval = {
  id: 'a1',
  user_id: 'ada',
  username: 'ada',
  command: 'uptime',
  payload: '',
  status: 'awaiting_approval',
  servers: [{ server_id: 's', server_name: 'vault' }],
  signatures: [],
  needed: 2,
  missing: 1,
  created_at: '2026-11-26T09:00:00Z',
  not_before: '2026-11-26T09:00:00Z',
  expires_at: '2999-11-26T11:00:00Z',
};

/** Answers with what `of` returns then: the list has it while it waits. */
function answerWith(of: () => typeof approval) {
  vi.spyOn(api, 'GET').mockImplementation(((path: string) => {
    const now = of();
    if (path.endsWith('/approvals/{id}')) return Promise.resolve(answered(now));
    return Promise.resolve(answered(path.endsWith('/approvals') && now === approval ? [now] : []));
  }) as never);
}

const main = () => document.querySelector('main') ?? document.body;
const button = (text: string) =>
  [...document.querySelectorAll('button')].find((each) => each.textContent?.trim() === text);
const dialog = () => document.querySelector('dialog');

async function settle(ms: number) {
  await vi.advanceTimersByTimeAsync(ms);
  flushSync();
  await vi.advanceTimersByTimeAsync(0);
}

it.each([
  ['the list', () => mount(Waiting, { target: main() })],
  ['the page', () => mount(ApprovalPage, { target: main(), props: { id: 'a1', started: () => undefined } })],
])('the dialog stays open where %s reads that somebody else has withdrawn the command', async (_, show) => {
  let now = approval;
  answerWith(() => now);
  const shown = show();
  await settle(10);
  await settle(10);
  const sign = button('Sign');
  press(sign);
  const opened = dialog();
  expect(opened).not.toBeNull();

  now = { ...approval, status: 'withdrawn' };
  await settle(20_000);
  expect(sign?.isConnected).toBe(false);
  expect(dialog()).toBe(opened);

  press(button('Cancel'));
  await settle(10);
  expect(dialog()).toBeNull();
  expect(document.activeElement?.tagName).toBe('H1');
  await unmount(shown);
});

it('the page leads to the batch once the open dialog is closed', async () => {
  let now = approval;
  answerWith(() => now);
  vi.spyOn(session, 'user', 'get').mockReturnValue({ id: 'ada', username: 'ada' } as never);
  const started = vi.fn();
  const shown = mount(ApprovalPage, { target: main(), props: { id: 'a1', started } });
  await settle(10);
  press(button('Sign'));

  now = { ...approval, status: 'approved', missing: 0 };
  await settle(20_000);
  expect(dialog()).not.toBeNull();
  expect(started).not.toHaveBeenCalled();
  press(button('Cancel'));
  await settle(10);

  expect(started).toHaveBeenCalledExactlyOnceWith('a1');
  await unmount(shown);
});
