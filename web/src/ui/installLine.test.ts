// @vitest-environment jsdom
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, expect, it, vi } from 'vitest';
import { service } from '../session/service.svelte';
import Allow from './Allow.svelte';
import { CAREFUL } from './install';
import InstallLine from './InstallLine.svelte';

afterEach(() => vi.unstubAllGlobals());

it('a line with an address waits for the address that servers reach', async () => {
  let answer: (response: Response) => void = () => undefined;
  vi.stubGlobal('fetch', () => new Promise<Response>((done) => (answer = done)));
  service.info = null;
  const target = document.body;
  const lines = [
    mount(InstallLine, { target, props: { apiKey: 'agent_secret', policy: CAREFUL } }),
    mount(Allow, { target, props: { right: 'commands' } }),
  ];
  flushSync();
  expect(target.textContent).not.toContain('/install.sh');

  answer(Response.json({ public_url: 'https://signalbox.example.com' }));

  await vi.waitFor(() =>
    expect(target.textContent?.match(/\S+\/install\.sh/g)).toEqual([
      'https://signalbox.example.com/install.sh',
      'https://signalbox.example.com/install.sh',
    ]),
  );
  for (const line of lines) await unmount(line);
});
