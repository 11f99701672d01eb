// Reads a recording from the agent that keeps it. Each time has an entry in the audit log.
import * as m from '#messages/recordings';
import { api, take, takePage } from '../../../../api/client';
import { Failure } from '../../../../api/failure';
import { parseCast, type Cast } from './cast';

/** An agent ends a recording at 16 MiB. */
const MOST_BYTES = 20 * 1024 * 1024;
/** An agent keeps at most 1,000 recordings. */
const LISTED = 1000;
const PAGE = 500;

export interface Recorded {
  /** The file as it came. */
  file: Blob;
  /** What it says; null where it cannot be played. */
  cast: Cast | null;
  /** In hexadecimal digits; null where the browser does not compute it, as without HTTPS. */
  sha256: string | null;
}

/** What the list of recordings says of one. */
export interface Listed {
  sha256: string;
  interrupted: boolean;
}

export async function readRecording(serverId: string, recordingId: string, signal: AbortSignal): Promise<Recorded> {
  const stream = await take(
    api.GET('/api/v1/servers/{id}/recordings/{recording_id}', {
      params: { path: { id: serverId, recording_id: recordingId } },
      parseAs: 'stream',
      signal,
    }),
  );
  const file = await collected(stream);
  return { file, cast: parseCast(await file.text()), sha256: await hashOf(file) };
}

/** Null for one that is not in the list. */
export async function findListed(serverId: string, recordingId: string, signal: AbortSignal): Promise<Listed | null> {
  for (let offset = 0; offset < LISTED; offset += PAGE) {
    const { items, total } = await takePage(
      api.GET('/api/v1/servers/{id}/recordings', {
        params: { path: { id: serverId }, query: { offset, limit: PAGE } },
        signal,
      }),
    );
    const found = items.find((item) => item.id === recordingId);
    if (found) return found;
    if (offset + PAGE >= total) break;
  }
  return null;
}

/** All that comes, unless it is more than a recording can be: an agent that somebody changed may send without end. */
export async function collected(
  stream: ReadableStream<Uint8Array<ArrayBuffer>> | null | undefined,
  most = MOST_BYTES,
): Promise<Blob> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  const reader = stream?.getReader();
  for (let size = 0; reader;) {
    const { done, value } = await reader.read().catch((error: unknown) => {
      // The answer had begun: what did not arrive at all is a failure already.
      if (error instanceof TypeError) throw new Failure(0, 'broke_off', m.brokeOff());
      throw error;
    });
    if (done) break;
    size += value.byteLength;
    if (size > most) {
      // The connection may have ended already.
      await reader.cancel().catch(() => undefined);
      throw new Failure(0, 'too_large', m.tooLarge());
    }
    chunks.push(value);
  }
  return new Blob(chunks, { type: 'application/x-asciicast' });
}

async function hashOf(file: Blob): Promise<string | null> {
  // Only a secure context has it.
  const subtle = crypto.subtle as SubtleCrypto | undefined;
  if (!subtle) return null;
  const hash = new Uint8Array(await subtle.digest('SHA-256', await file.arrayBuffer()));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
