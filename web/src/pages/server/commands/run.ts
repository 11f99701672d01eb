import { api, take } from '../../../api/client';
import type { Command, Server } from '../../../api/types';
import { asksForSignatures, sendSigned } from '../../../signing/ask';
import { letWait } from '../../../signing/wait';

export interface Wanted {
  command: string;
  timeoutSeconds: number;
  stdin: string | null;
}

/** An agent says within so many seconds that it does not accept a signature. */
const REFUSAL_SECONDS = 1;

/** Runs a command on a server, signed where it asks for that. Undefined where the person leaves. */
export function runCommand(server: Server, { command, timeoutSeconds, stdin }: Wanted): Promise<Command | undefined> {
  const order = {
    deed: { kind: 'command', command, stdin, timeoutSeconds } as const,
    servers: [server],
    mayBeUnsigned: true,
    wait: letWait({ server_ids: [server.id], command, timeout_seconds: timeoutSeconds, stdin }),
  };
  return sendSigned(order, asksForSignatures(server, 'commands_signed'), (signed) =>
    take(
      api.POST('/api/v1/commands/{server_id}', {
        params: { path: { server_id: server.id }, query: { wait: signed ? REFUSAL_SECONDS : 0 } },
        body: { command, timeout_seconds: timeoutSeconds, stdin, signed },
      }),
    ),
  );
}
