// Who has access to servers, in words, and what ends with a grant. Pure.
import * as m from '#messages/share';
import type { Access, Grant, Server } from '../../../api/types';
import { ROLES, type Role } from '../../../lib/access';

/** A grant that reaches somebody. */
export type Means = Access['grants'][number];
export type Scope = Means['scope'];

/** The servers of a grant, as they stand at one server. */
export function scopeWords({ all, tag }: Scope, owner: string): string {
  if (tag) return m.directTag({ owner, tag });
  return all ? m.directAll({ owner }) : m.direct();
}

/** Through what somebody has access. */
export function meansWords({ scope, team }: Means, owner: string): string {
  const where = scopeWords(scope, owner);
  return team ? m.throughTeam({ where, team: team.name }) : where;
}

/** Whether the caller may end a grant that a server lists. */
export function mayEnd(server: Pick<Server, 'role'>, means: Means, isOwn: boolean): boolean {
  if (server.role === 'owner') return true;
  if (isOwn && !means.team) return true;
  return server.role === 'manager' && Boolean(means.scope.server_id);
}

const ORDER: readonly Role[] = ['viewer', 'responder', 'operator', 'manager', 'owner'];

/** The role that somebody keeps without a grant; null if they no longer see the server. */
export function roleWithout(grants: readonly Means[], ended: string): Role | null {
  const kept = grants.filter(({ id }) => id !== ended).map(({ role }) => ORDER.indexOf(role));
  return kept.length ? (ORDER[Math.max(...kept)] ?? null) : null;
}

/** What the question says that is asked before a grant is ended. */
export function endWords(person: Access, means: Means, server: string, isOwn: boolean): string {
  const subject = person.user.username;
  const kept = roleWithout(person.grants, means.id);
  const role = ROLES[means.role].label();
  const first = means.team
    ? m.endTeam({ team: means.team.name, role, server })
    : kept
      ? m.endKeeps({ subject, role: ROLES[kept].label(), server })
      : isOwn
        ? m.endLeave({ server })
        : m.endGone({ subject, server });
  const wide = means.scope.server_id ? [] : [m.endWide()];
  return [first, ...wide, m.endOpen()].join(' ');
}

/** Grants to teams on a server that reach nobody yet: no person is listed for them. */
export function grantsOfNobody(grants: readonly Grant[], people: readonly Access[], server: Server): Grant[] {
  const known = new Set(people.flatMap((person) => person.grants.map(({ id }) => id)));
  const isOn = ({ scope, owner }: Grant) =>
    scope.server_id === server.id ||
    (owner.id === server.owner.id && (scope.all || (!!scope.tag && server.tags.includes(scope.tag))));
  return grants.filter((grant) => grant.subject.team_id && isOn(grant) && !known.has(grant.id));
}
