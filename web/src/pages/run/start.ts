import { api, take } from '../../api/client';
import type { Batch } from '../../api/types';
import type { Draft } from './draft';

/** Runs a command on many servers; gives the batch as it begins. */
export function startBatch(draft: Draft, stdin: string | null = null): Promise<Batch> {
  return take(
    api.POST('/api/v1/commands', {
      body: {
        server_ids: draft.serverIds,
        command: draft.command,
        timeout_seconds: draft.timeoutSeconds,
        concurrency: draft.concurrency,
        stop_on_failure: draft.stopOnFailure,
        stdin,
      },
    }),
  );
}
