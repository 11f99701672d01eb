// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, it, vi } from 'vitest';
import { api } from '../../../api/client';
import { answered, waiting, withDialogs } from '../../testing';
import CreateKey from './CreateKey.svelte';

withDialogs();
afterEach(() => void vi.restoreAllMocks());

it('a key that is being made is shown, whatever is pressed until then', async () => {
  const { answer, end } = waiting();
  vi.spyOn(api, 'GET').mockResolvedValue(answered([]));
  vi.spyOn(api, 'POST').mockReturnValue(answer);
  const close = vi.fn();
  const shown = mount(CreateKey, { target: document.body, props: { serverId: 'one', serverName: 'db-1', close } });
  flushSync();
  const dialog = () => document.querySelector('dialog');

  document.querySelector('form')?.requestSubmit();
  flushSync();
  dialog()?.dispatchEvent(new Event('cancel', { cancelable: true }));
  for (const button of document.querySelectorAll<HTMLElement>('header button, footer button')) button.click();
  expect(close).not.toHaveBeenCalled();

  end({ key: 'agent_secret' });
  await vi.waitFor(() => expect(dialog()?.textContent).toContain('agent_secret'));
  await unmount(shown);
});
