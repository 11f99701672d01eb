// A command that waits for signatures: asked for again while it waits.
import { api, take } from '../../../api/client';
import type { Approval } from '../../../api/types';
import { clock } from '../../../live/clock.svelte';
import type { Signature } from '../../../signing/payload';
import { Polled } from '../../../ui/polled.svelte';

const LOOK_MS = 3_000;

/** What has begun to run may wait again: where the agents refuse its signatures, they mostly do at once. */
const SETTLED_MS = 60_000;

const at = (id: string) => ({ params: { path: { id } } });

export const readApproval = (id: string): Promise<Approval> => take(api.GET('/api/v1/commands/approvals/{id}', at(id)));

export function polledApproval(id: string): Polled<Approval> {
  return new Polled(
    () => readApproval(id),
    ({ status, ended_at }) => {
      const hasBegun = status === 'approved' && clock.present() < Date.parse(ended_at ?? '') + SETTLED_MS;
      return status === 'awaiting_approval' || hasBegun ? LOOK_MS : null;
    },
  );
}

/**
 * The id under which the account with the id `me` follows what has begun to run. Batches belong to who asked: others follow the
 * approval. A command that waited again after its signatures were refused runs as another batch.
 */
export function followed(approval: Pick<Approval, 'id' | 'user_id' | 'batch_id'>, me: string | undefined): string {
  return approval.user_id === me ? (approval.batch_id ?? approval.id) : approval.id;
}

/** Adds a signature; gives what the command is then. */
export function sign(id: string, signature: Signature): Promise<Approval> {
  return take(api.POST('/api/v1/commands/approvals/{id}/signatures', { ...at(id), body: signature }));
}

export async function withdraw(id: string): Promise<void> {
  await take(api.DELETE('/api/v1/commands/approvals/{id}', at(id)));
}
