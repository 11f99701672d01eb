// What the caller may do to a server, and why not: the one place of the interface that decides it, by the same table as
// src/auth/access.rs of the service. Pure.
import * as m from '#messages/access';
import type { Server } from '../api/types';

export type Role = Server['role'];
export type Right = Server['rights'][number];
/** Seeing a server needs nothing: what may not be seen is not listed. */
export type Action = 'respond' | Right | 'manage' | 'own';
/** What the caller is for a server, and whom to ask for more. */
export type Standing = Pick<Server, 'name' | 'owner' | 'role' | 'rights'>;

/** Each contains the ones before it. */
const ORDER: readonly Role[] = ['viewer', 'responder', 'operator', 'manager', 'owner'];

export const ROLES: Record<Role, { label: () => string; text: () => string }> = {
  viewer: { label: m.viewer, text: m.viewerText },
  responder: { label: m.responder, text: m.responderText },
  operator: { label: m.operator, text: m.operatorText },
  manager: { label: m.manager, text: m.managerText },
  owner: { label: m.owner, text: m.ownerText },
};

export const RIGHTS: Record<Right, () => string> = {
  containers: m.containers,
  commands: m.commands,
  logs: m.logs,
  terminal: m.terminal,
};

/** A role with the rights that the grant of an operator names: `Operator (Read logs, Run commands)`. */
export function roleWords(role: Role, rights: readonly Right[]): string {
  const label = ROLES[role].label();
  if (role !== 'operator' || rights.length === 0) return label;
  return m.roleWith({ role: label, rights: rights.map((right) => RIGHTS[right]()).join(', ') });
}

const NEEDS: Record<Action, (whom: { owner: string; server: string }) => string> = {
  respond: m.needsRespond,
  containers: m.needsContainers,
  commands: m.needsCommands,
  logs: m.needsLogs,
  terminal: m.needsTerminal,
  manage: m.needsManage,
  own: m.needsOwn,
};

const isAtLeast = (role: Role, least: Role) => ORDER.indexOf(role) >= ORDER.indexOf(least);

/** Whether the caller may do this to a server. */
export function allows(server: Pick<Server, 'role' | 'rights'>, action: Action): boolean {
  switch (action) {
    case 'respond':
      return isAtLeast(server.role, 'responder');
    case 'manage':
      return isAtLeast(server.role, 'manager');
    case 'own':
      return server.role === 'owner';
    case 'containers':
    case 'commands':
    case 'logs':
    case 'terminal':
      return server.rights.includes(action);
  }
}

/** Why the caller may not do this, and whom to ask; null where they may. A server that is not known yet refuses nothing. */
export function refusal(server: Standing | undefined, action: Action): string | null {
  if (!server || allows(server, action)) return null;
  return NEEDS[action]({ owner: server.owner.username, server: server.name });
}

/** Of several servers, the first that refuses. */
export function refusalOfAny(servers: readonly (Standing | undefined)[], action: Action): string | null {
  for (const server of servers) {
    const refused = refusal(server, action);
    if (refused) return refused;
  }
  return null;
}

/** Why something for all servers with a tag, or for all, cannot begin at this one; null on an own server. */
export function refusalBeyond(server: Standing): string | null {
  return server.role === 'owner' ? null : m.needsAllServers({ owner: server.owner.username, server: server.name });
}
