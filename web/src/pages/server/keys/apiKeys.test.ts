// @vitest-environment jsdom
import { mount, unmount } from 'svelte';
import { afterEach, it, vi } from 'vitest';
import { api } from '../../../api/client';
import { confirm } from '../../../ui/confirm.svelte';
import { answered, expectOneBusy, waiting } from '../../testing';
import type { ServerView } from '../view.svelte';
import ApiKeys from './ApiKeys.svelte';

afterEach(() => void vi.restoreAllMocks());

const key = (id: string) => ({
  id,
  server_id: 's',
  name: id,
  prefix: 'agent_a',
  created_at: '2026-11-21T10:00:00Z',
  last_used_at: null,
  expires_at: null,
});

it('the key that is being revoked is busy, and the others wait', async () => {
  const asked = vi.spyOn(confirm, 'ask').mockResolvedValue(true);
  const { answer, end } = waiting();
  vi.spyOn(api, 'GET').mockResolvedValue(answered([key('old'), key('new')]));
  vi.spyOn(api, 'DELETE').mockReturnValue(answer);
  const view = { id: 's', server: { name: 'db-1' }, refusal: () => null } as unknown as ServerView;
  const shown = mount(ApiKeys, { target: document.body, props: { view } });

  await expectOneBusy(
    () => [...document.querySelectorAll<HTMLButtonElement>('td button')],
    asked,
    () => end({}),
  );
  await unmount(shown);
});
