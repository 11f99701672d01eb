import { describe, expect, it } from 'vitest';
import type { Access, Grant, Server } from '../../../api/types';
import { endWords, grantsOfNobody, mayEnd, meansWords, roleWithout, type Means } from './words';

const NOWHERE = { server_id: null, server_name: null, tag: null, all: false };
const means = (id: string, changes: Partial<Means> = {}): Means => ({
  id,
  role: 'viewer',
  rights: [],
  scope: { ...NOWHERE, server_id: 's' },
  team: null,
  ...changes,
});
const ops = { id: 't', name: 'ops' };
const bob = (...grants: Means[]): Access => ({
  user: { id: 'b', username: 'bob' },
  role: 'viewer',
  rights: [],
  grants,
});

describe('access in words', () => {
  it('says where, and through which team', () => {
    expect(meansWords(means('1'), 'ada')).toBe('On this server');
    expect(meansWords(means('1', { scope: { ...NOWHERE, tag: 'db' }, team: ops }), 'ada')).toBe(
      'On all servers of ada with the tag db, through the team ops',
    );
    expect(meansWords(means('1', { scope: { ...NOWHERE, all: true } }), 'ada')).toBe('On all servers of ada');
  });
});

describe('the end of a grant', () => {
  it('leaves the highest role of the others', () => {
    const grants = [means('1', { role: 'manager' }), means('2'), means('3', { role: 'operator' })];

    expect(roleWithout(grants, '1')).toBe('operator');
    expect(roleWithout(grants, '2')).toBe('manager');
    expect(roleWithout([means('1')], '1')).toBeNull();
  });

  it('says what somebody loses, and where else', () => {
    const direct = means('1', { role: 'operator' });
    expect(endWords(bob(direct), direct, 'web-1', false)).toBe(
      'bob will no longer see web-1. Pages, logs and terminals that depend on it close at once.',
    );
    expect(endWords(bob(direct, means('2')), direct, 'web-1', false)).toContain('bob keeps the role Viewer on web-1');
    expect(endWords(bob(direct), direct, 'web-1', true)).toContain('Only its owner or a manager can give you access');
    const wide = means('1', { role: 'operator', team: ops, scope: { ...NOWHERE, tag: 'db' } });
    expect(endWords(bob(wide), wide, 'web-1', false)).toContain('All members of the team ops lose the role Operator');
    expect(endWords(bob(wide), wide, 'web-1', false)).toContain('on the other servers of this grant');
  });

  it('is for the owner, for managers of that server alone, and for one with oneself', () => {
    const wide = means('1', { scope: { ...NOWHERE, all: true } });

    expect(mayEnd({ role: 'owner' }, wide, false)).toBe(true);
    expect(mayEnd({ role: 'manager' }, wide, false)).toBe(false);
    expect(mayEnd({ role: 'manager' }, means('1'), false)).toBe(true);
    expect(mayEnd({ role: 'viewer' }, wide, true)).toBe(true);
    expect(mayEnd({ role: 'viewer' }, means('1', { team: ops }), true)).toBe(false);
  });
});

it('a team without members is listed for its grant', () => {
  const server = { id: 's', tags: ['db'], owner: { id: 'a', username: 'ada' } } as unknown as Server;
  const grant = (id: string, scope: Partial<Grant['scope']>, team_id: string | null = 't') =>
    ({ id, scope: { ...NOWHERE, ...scope }, subject: { team_id }, owner: { id: 'a' } }) as unknown as Grant;
  const grants = [
    grant('1', { server_id: 's' }),
    grant('2', { tag: 'db' }),
    grant('3', { all: true }),
    grant('4', { tag: 'web' }),
    grant('5', { server_id: 'other' }),
    grant('6', { server_id: 's' }, null),
  ];

  expect(grantsOfNobody(grants, [bob(means('3', { team: ops }))], server).map(({ id }) => id)).toEqual(['1', '2']);
});
