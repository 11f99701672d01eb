// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, it, vi } from 'vitest';
import * as m from '#messages/signing';
import { Failure } from '../api/failure';
import { press, statesOf, waiting, withDialogs } from '../pages/testing';
import SignDialog from './SignDialog.svelte';

withDialogs();
afterEach(() => void vi.restoreAllMocks());

it('what is sent without a signature is busy at the button that sends it', async () => {
  const { answer, end } = waiting();
  const [send, done] = [vi.fn(() => answer), vi.fn()];
  const order = {
    deed: { kind: 'command' as const, command: 'uptime', stdin: null, timeoutSeconds: 60 },
    servers: [{ id: 's', name: 'db-1' }],
    mayBeUnsigned: true,
  };
  const shown = mount(SignDialog, { target: document.body, props: { order, send, done } });
  flushSync();
  const named = (name: string) =>
    [...document.querySelectorAll('button')].find((button) => button.textContent?.trim() === name);
  const [unsigned, sign] = [named(m.unsigned()), named(m.signAndRun())];
  const states = () => statesOf([unsigned, sign]);
  expect(sign).toBeDefined();

  press(unsigned);
  press(unsigned);
  expect(states()).toEqual(['busy', 'disabled']);
  expect(send).toHaveBeenCalledTimes(1);
  end(Failure.unreachable());
  await vi.waitFor(() => expect(states()).toEqual(['ready', 'ready']));

  expect(document.activeElement).toBe(unsigned);
  expect(done).not.toHaveBeenCalled();
  await unmount(shown);
});
