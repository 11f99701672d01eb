// Where servers ask for signatures: what is to be signed, and the way to the dialog, whose code is loaded when it is needed.
import { failureOf } from '../api/failure';
import type { Server } from '../api/types';
import type { Deed, Signed } from './payload';

export interface Order {
  deed: Deed;
  /** Where it is to run. */
  servers: Asker[];
  /** Whether it may be sent as it is: a policy may allow it without a signature. */
  mayBeUnsigned?: boolean;
  /** Leaves it with the service until others have signed, where that is possible. */
  wait?: (signed: Signed) => Promise<void>;
}

/** A server that asks for signatures, and what its agent has said of that. */
export type Asker = Pick<Server, 'id' | 'name'> & {
  agent?: { signing?: { name: string; approvals: number } | null } | null | undefined;
};

/** How many different people have to sign, as far as agents have said. They alone decide. */
export function neededFor(servers: readonly Asker[]): number {
  return Math.max(1, ...servers.map((server) => server.agent?.signing?.approvals ?? 1));
}

/** What agents have among their capabilities where their policies say `signed`. */
export type SignedCapability = 'commands_signed' | 'terminal_signed' | 'docker_signed';

export function asksForSignatures(
  server: { agent?: { capabilities: string[] } | null } | undefined,
  of: SignedCapability,
): boolean {
  return server?.agent?.capabilities.includes(of) ?? false;
}

/** Gets signatures and sends them with the order. Undefined where the person leaves. */
export async function signAndSend<T>(
  order: Order,
  send: (signed: Signed | null) => Promise<T>,
): Promise<T | undefined> {
  const { openDialog } = await import('./open');
  let result: T | undefined;
  await openDialog(order, async (signed) => {
    result = await send(signed);
  });
  return result;
}

/**
 * Sends something that servers may want signed: at once where none is known to, and again with signatures where an agent says that
 * it does.
 */
export async function sendSigned<T>(
  order: Order,
  isAsked: boolean,
  send: (signed: Signed | null) => Promise<T>,
): Promise<T | undefined> {
  if (!isAsked) {
    try {
      return await send(null);
    } catch (error) {
      if (failureOf(error).reason !== 'not_signed') throw error;
    }
  }
  return signAndSend(order, send);
}
