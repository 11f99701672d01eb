// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, it, vi } from 'vitest';
import * as m from '#messages/commands';
import { api } from '../../../api/client';
import { Failure } from '../../../api/failure';
import { press, waiting, withDialogs } from '../../testing';
import type { ServerView } from '../view.svelte';
import Composer from './Composer.svelte';

withDialogs();
afterEach(() => void vi.restoreAllMocks());

function composer() {
  const told = { started: vi.fn(), lost: vi.fn() };
  const view = { server: { id: 's', name: 's', agent: { capabilities: ['commands'] } } } as unknown as ServerView;
  const shown = mount(Composer, { target: document.body, props: { view, past: [], isAway: false, ...told } });
  const field = document.querySelector('textarea');
  const write = (text: string) => {
    if (field) field.value = text;
    field?.dispatchEvent(new Event('input', { bubbles: true }));
    flushSync();
  };
  /** Runs what is written; `end` gives the answer. */
  const run = () => {
    const { answer, end } = waiting();
    vi.spyOn(api, 'POST').mockReturnValueOnce(answer);
    document.querySelector('form')?.requestSubmit();
    flushSync();
    return async (data: unknown) => {
      end(data);
      await vi.waitFor(() => expect(document.querySelector('form [aria-busy="true"]')).toBeNull());
      await new Promise((resolve) => setTimeout(resolve));
      flushSync();
    };
  };
  const alert = () => document.querySelector('[role="alert"]')?.textContent ?? '';
  return { ...told, field, write, run, alert, leave: () => unmount(shown) };
}

it('a command whose answer was lost may run: nobody is asked to try it again', async () => {
  const { lost, field, write, run, alert, leave } = composer();
  write('reboot');

  await run()(new Failure(503, 'agent_offline', 'The agent is offline.'));
  expect(alert()).toContain('The agent is offline.');
  expect(lost).not.toHaveBeenCalled();

  await run()(Failure.unreachable());
  expect(alert()).toContain(m.unsure());
  expect(lost).toHaveBeenCalledTimes(1);

  await run()(new Failure(504, '', 'The service answered with status 504.'));
  expect(alert()).toContain(m.unsure());
  expect(lost).toHaveBeenCalledTimes(2);
  expect(field?.value).toBe('reboot');
  await leave();
});

it('what is written while a command is sent is the next one', async () => {
  const { started, field, write, run, leave } = composer();
  write('uptime');
  const answer = run();
  write('uptime -s');
  await answer({ command_id: 'one' });
  expect(started).toHaveBeenCalledTimes(1);
  expect(field?.value).toBe('uptime -s');

  await run()({ command_id: 'two' });
  expect(field?.value).toBe('');
  await leave();
});

it('the button that ran a command keeps the focus, and runs nothing without one', async () => {
  const { field, write, run, leave } = composer();
  write('uptime');

  await run()({ id: 'c' });

  expect(field?.value).toBe('');
  const button = document.querySelector<HTMLButtonElement>('button[type="submit"]');
  expect([button?.disabled, button?.getAttribute('aria-disabled')]).toEqual([false, 'true']);
  const sent = vi.spyOn(api, 'POST').mockClear();
  press(button);
  expect(sent).not.toHaveBeenCalled();
  await leave();
});
