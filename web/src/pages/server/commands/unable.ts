import * as m from '#messages/commandParts';
import type { Server, ServerStatus } from '../../../api/types';
import type { Capability } from '../view.svelte';

/** Why a server can do nothing of a kind now: never seen, away, or not allowed by the person who runs its agent. */
export type Unable = 'pending' | 'offline' | 'policy';

/** `null` when it can. */
export function unable(server: Server, status: ServerStatus, capability: Capability): Unable | null {
  if (status === 'pending') return 'pending';
  if (!server.agent?.capabilities.includes(capability)) return 'policy';
  return status === 'offline' ? 'offline' : null;
}

/** In a few words, beside its name in a list. */
export const unableWords: Record<Unable, () => string> = {
  pending: m.unablePending,
  offline: m.unableOffline,
  policy: m.unablePolicy,
};
