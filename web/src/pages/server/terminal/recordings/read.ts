// Reads a recording from the agent that keeps it. Each time has an entry in the audit log.
import * as m from '#messages/recordings';
import { api, take } from '../../../../api/client';
import { Failure } from '../../../../api/failure';
import { parseCast, type Cast } from './cast';

export interface Recorded {
  /** The file as it came. */
  file: Blob;
  /** What it says; null where it cannot be played. */
  cast: Cast | null;
}

export async function readRecording(serverId: string, recordingId: string, signal: AbortSignal): Promise<Recorded> {
  const request = api.GET('/api/v1/servers/{id}/recordings/{recording_id}', {
    params: { path: { id: serverId, recording_id: recordingId } },
    parseAs: 'blob',
    signal,
  });
  const file = await take(request).catch((error: unknown) => {
    // The answer had begun: what did not arrive at all is a failure already.
    if (error instanceof TypeError) throw new Failure(0, 'broke_off', m.brokeOff());
    throw error;
  });
  return { file, cast: parseCast(await file.text()) };
}
