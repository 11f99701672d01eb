import * as m from '#messages/commandParts';
import type { Server, ServerStatus } from '../../../api/types';
import { allows, type Right } from '../../../lib/access';
import type { Capability } from '../view.svelte';

/**
 * Why a server can do nothing of a kind now: the caller may not, it was never seen, is away, or the person who runs its agent does
 * not allow it.
 */
export type Unable = 'right' | 'pending' | 'offline' | 'policy';

/** The right that a grant has to name; seeing containers needs none. */
const RIGHTS: Partial<Record<Capability, Right>> = {
  commands: 'commands',
  terminal: 'terminal',
  logs: 'logs',
  docker_control: 'containers',
};

/** `null` when it can. */
export function unable(server: Server, status: ServerStatus, capability: Capability): Unable | null {
  const right = RIGHTS[capability];
  if (right && !allows(server, right)) return 'right';
  if (status === 'pending') return 'pending';
  if (!server.agent?.capabilities.includes(capability)) return 'policy';
  return status === 'offline' ? 'offline' : null;
}

/** In a few words, beside its name in a list. */
export const unableWords: Record<Unable, () => string> = {
  right: m.unableRight,
  pending: m.unablePending,
  offline: m.unableOffline,
  policy: m.unablePolicy,
};
