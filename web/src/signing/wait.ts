// A signed command that is left with the service until others have signed it too.
import * as m from '#messages/signing';
import type { components } from '../../generated/api';
import { api, take } from '../api/client';
import { router } from '../router/router.svelte';
import { toasts } from '../ui/toasts.svelte';
import type { Signed } from './payload';

type ApprovalIn = components['schemas']['ApprovalIn'];

/** Leaves it there, and goes where it waits. */
export function letWait(order: Omit<ApprovalIn, 'signed'>): (signed: Signed) => Promise<void> {
  return async (signed) => {
    const made = await take(api.POST('/api/v1/commands/approvals', { body: { ...order, signed } }));
    if (made.missing > 0) toasts.done(m.askedDone({ count: made.missing }));
    router.go(`/run/${made.id}`);
  };
}
