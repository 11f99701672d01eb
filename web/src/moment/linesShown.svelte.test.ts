// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import * as m from '#messages/moment';
import { api } from '../api/client';
import { Failure } from '../api/failure';
import { fleet } from '../live/fleet.svelte';
import { answered } from '../pages/testing';
import Lines from './Lines.svelte';
import { AROUND, AT } from './testing';

beforeEach(() => void vi.useFakeTimers());

afterEach(() => {
  fleet.reset();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const server = {
  id: 's1',
  name: 'db-1',
  tags: [],
  status: 'online',
  role: 'owner',
  rights: ['logs'],
  agent: { capabilities: ['logs'] },
};
const broke = { message: 'it broke', stream: null, timestamp: AT };

it('lines that are there stay when the agent leaves, or when they cannot be read again, and that is said below them', async () => {
  let isFailing = false;
  vi.spyOn(api, 'GET').mockImplementation(((path: string) => {
    if (path === '/api/v1/servers') return Promise.resolve(answered([server]));
    if (isFailing) return Promise.reject(Failure.unreachable());
    return Promise.resolve(answered({ lines: [broke], truncated: false }));
  }) as never);
  await fleet.load();
  let span = $state.raw(AROUND);
  const props = {
    serverId: 's1',
    get from() {
      return span.from;
    },
    get to() {
      return span.to;
    },
  };
  const shown = mount(Lines, { target: document.body, props });
  const settle = async () => {
    flushSync();
    await vi.advanceTimersByTimeAsync(1_000);
    flushSync();
  };
  const turn = async (status: 'online' | 'offline') => {
    const row = fleet.row('s1');
    if (row) row.status = status;
    await settle();
  };
  const move = async (by: number) => {
    span = { from: span.from + by, to: span.to + by };
    await settle();
  };
  const said = () => {
    const text = document.body.textContent ?? '';
    const hasFailed = document.querySelector('[role="alert"]') !== null;
    return { lines: text.includes('it broke'), away: text.includes(m.logsAway()), hasFailed };
  };
  await settle();
  expect(said()).toEqual({ lines: true, away: false, hasFailed: false });

  await turn('offline');
  expect(said()).toEqual({ lines: true, away: true, hasFailed: false });
  // Of other minutes there are none.
  await move(3_600);
  expect(said()).toEqual({ lines: false, away: true, hasFailed: false });
  await move(-3_600);
  expect(said()).toEqual({ lines: true, away: true, hasFailed: false });

  isFailing = true;
  await turn('online');
  expect(said()).toEqual({ lines: true, away: false, hasFailed: true });
  await move(3_600);
  expect(said()).toEqual({ lines: false, away: false, hasFailed: true });
  isFailing = false;
  await move(-3_600);
  expect(said()).toEqual({ lines: true, away: false, hasFailed: false });
  await unmount(shown);
});
