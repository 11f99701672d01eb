// @vitest-environment jsdom
import { mount, unmount } from 'svelte';
import { afterEach, expect, it, vi } from 'vitest';
import { api } from '../../../api/client';
import { fleet } from '../../../live/fleet.svelte';
import { confirm } from '../../../ui/confirm.svelte';
import { answered, expectOneBusy, press, waiting } from '../../testing';
import Tokens from './Tokens.svelte';

afterEach(() => void vi.restoreAllMocks());

const token = (id: string) => ({
  id,
  name: id,
  prefix: 'sbt_a',
  role: 'viewer',
  rights: [],
  scope: { server_ids: null, tag: null, all: true },
  networks: [],
  last_used_at: null,
  last_used_address: null,
  expires_at: '2030-01-01T00:00:00Z',
});

it('the token that is being revoked is busy, and the others wait', async () => {
  const asked = vi.spyOn(confirm, 'ask').mockResolvedValue(true);
  const { answer, end } = waiting();
  vi.spyOn(fleet, 'watch').mockReturnValue(() => undefined);
  vi.spyOn(api, 'GET').mockResolvedValue(answered([token('grafana'), token('prometheus')]));
  vi.spyOn(api, 'DELETE').mockReturnValue(answer);
  const shown = mount(Tokens, { target: document.body });

  await expectOneBusy(
    () => [...document.querySelectorAll<HTMLButtonElement>('td button')],
    asked,
    () => end({}),
  );
  await unmount(shown);
});

it('the focus is on the next token once one is revoked, and on the heading after the last one', async () => {
  let tokens = [token('grafana'), token('prometheus')];
  vi.spyOn(confirm, 'ask').mockResolvedValue(true);
  vi.spyOn(fleet, 'watch').mockReturnValue(() => undefined);
  vi.spyOn(api, 'GET').mockImplementation((() => Promise.resolve(answered(tokens))) as never);
  vi.spyOn(api, 'DELETE').mockImplementation((() => {
    tokens = tokens.slice(1);
    return Promise.resolve(answered({}));
  }) as never);
  const shown = mount(Tokens, { target: document.body });
  const buttons = () => [...document.querySelectorAll<HTMLButtonElement>('td button')];
  await vi.waitFor(() => expect(buttons()).toHaveLength(2));
  const [first, second] = buttons();

  press(first);
  await vi.waitFor(() => expect(first?.isConnected).toBe(false));
  await vi.waitFor(() => expect(document.activeElement).toBe(second));

  press(second);
  await vi.waitFor(() => expect(second?.isConnected).toBe(false));
  await vi.waitFor(() => expect(document.activeElement).toBe(document.querySelector('h2')));
  await unmount(shown);
});
