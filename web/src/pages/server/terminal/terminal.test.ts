// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { expect, it, vi } from 'vitest';
import type { Server } from '../../../api/types';
import { openDialog } from '../../../signing/open';
import { ServerView } from '../view.svelte';
import Terminal from './Terminal.svelte';

vi.mock('../../../signing/open', () => ({ openDialog: vi.fn(() => Promise.resolve()) }));

it('a second click while the signing dialog is loaded opens no second one', async () => {
  const server = {
    id: 'one',
    name: 'db-1',
    status: 'online',
    role: 'owner',
    rights: ['terminal'],
    agent: { capabilities: ['terminal', 'terminal_signed'] },
  } as unknown as Server;
  const terminal = mount(Terminal, { target: document.body, props: { view: new ServerView(server) } });
  flushSync();
  const button = document.querySelector<HTMLButtonElement>('button.primary');

  button?.click();
  button?.click();

  await vi.waitFor(() => expect(openDialog).toHaveBeenCalled());
  await new Promise((done) => setTimeout(done));
  expect(openDialog).toHaveBeenCalledTimes(1);
  await unmount(terminal);
});
