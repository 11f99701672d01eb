// @vitest-environment jsdom
import { mount, unmount } from 'svelte';
import { afterEach, it, vi } from 'vitest';
import { api } from '../../../api/client';
import { fleet } from '../../../live/fleet.svelte';
import { confirm } from '../../../ui/confirm.svelte';
import { answered, expectOneBusy, waiting } from '../../testing';
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
