import { api, take } from '../../api/client';
import type { Batch } from '../../api/types';
import { letWait } from '../../signing/wait';
import { fleet } from '../../live/fleet.svelte';
import { asksForSignatures, sendSigned } from '../../signing/ask';
import type { Draft } from './draft';

/** Those of the servers that ask for signatures. */
export function signedOf(serverIds: readonly string[]): string[] {
  return serverIds.filter((id) => asksForSignatures(fleet.row(id)?.server, 'commands_signed'));
}

/** Runs a command on many servers; gives the batch as it begins. Undefined where the person leaves without signing. */
export function startBatch(draft: Draft, stdin: string | null = null): Promise<Batch | undefined> {
  const { command, serverIds, timeoutSeconds } = draft;
  const order = {
    deed: { kind: 'command', command, stdin, timeoutSeconds } as const,
    servers: serverIds.map((id) => ({
      id,
      name: fleet.row(id)?.server.name ?? id,
      agent: fleet.row(id)?.server.agent,
    })),
    mayBeUnsigned: true,
    wait: letWait({
      server_ids: serverIds,
      command,
      timeout_seconds: timeoutSeconds,
      concurrency: draft.concurrency,
      stop_on_failure: draft.stopOnFailure,
      stdin,
    }),
  };
  // The service takes signatures only where every server of a batch checks them.
  const isSigned = serverIds.length > 0 && signedOf(serverIds).length === serverIds.length;
  return sendSigned(order, isSigned, (signed) =>
    take(
      api.POST('/api/v1/commands', {
        body: {
          server_ids: serverIds,
          command,
          timeout_seconds: timeoutSeconds,
          concurrency: draft.concurrency,
          stop_on_failure: draft.stopOnFailure,
          stdin,
          signed,
        },
      }),
    ),
  );
}
