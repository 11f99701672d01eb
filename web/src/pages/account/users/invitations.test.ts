// @vitest-environment jsdom
import { mount, unmount } from 'svelte';
import { afterEach, it, vi } from 'vitest';
import { api } from '../../../api/client';
import { confirm } from '../../../ui/confirm.svelte';
import { answered, expectOneBusy, waiting } from '../../testing';
import Invitations from './Invitations.svelte';

afterEach(() => void vi.restoreAllMocks());

const invitation = (id: string) => ({
  id,
  email: `${id}@example.com`,
  invited_by: null,
  expires_at: '2030-01-01T00:00:00Z',
});

it('the invitation that is being revoked is busy, and the others wait', async () => {
  const asked = vi.spyOn(confirm, 'ask').mockResolvedValue(true);
  const { answer, end } = waiting();
  vi.spyOn(api, 'GET').mockResolvedValue(answered([invitation('bob'), invitation('eve')]));
  vi.spyOn(api, 'DELETE').mockReturnValue(answer);
  const shown = mount(Invitations, { target: document.body });

  await expectOneBusy(
    () => [...document.querySelectorAll<HTMLButtonElement>('li button')],
    asked,
    () => end({}),
  );
  await unmount(shown);
});
