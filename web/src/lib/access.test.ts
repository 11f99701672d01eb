import { describe, expect, it } from 'vitest';
import {
  allows,
  refusal,
  refusalBeyond,
  refusalOfAny,
  roleWords,
  type Action,
  type Role,
  type Standing,
} from './access';

const ACTIONS: Action[] = ['respond', 'containers', 'commands', 'logs', 'terminal', 'manage', 'own'];

const standing = (role: Role, rights: Standing['rights'] = []): Standing => ({
  name: 'web-1',
  owner: { id: 'a', username: 'ada' },
  role,
  rights,
});

const allowed = (role: Role, rights: Standing['rights'] = []) =>
  ACTIONS.filter((action) => allows(standing(role, rights), action));

describe('what a role allows', () => {
  it('is what the ones before it allow, and more', () => {
    expect(allowed('viewer')).toEqual([]);
    expect(allowed('responder')).toEqual(['respond']);
    expect(allowed('operator', ['logs'])).toEqual(['respond', 'logs']);
    expect(allowed('operator', ['commands', 'containers'])).toEqual(['respond', 'containers', 'commands']);
    const all: Standing['rights'] = ['containers', 'commands', 'logs', 'terminal'];
    expect(allowed('manager', all)).toEqual(['respond', ...all, 'manage']);
    expect(allowed('owner', all)).toEqual(ACTIONS);
  });
});

describe('a role in words', () => {
  it('names the rights of an operator', () => {
    expect(roleWords('operator', ['commands', 'logs'])).toBe('Operator (Run commands, Read logs)');
    expect(roleWords('manager', ['commands', 'logs'])).toBe('Manager');
  });
});

describe('a refusal', () => {
  it('says what is needed, and whom to ask', () => {
    expect(refusal(standing('viewer'), 'commands')).toBe('Needs the right to run commands. Ask ada, who owns web-1.');
    expect(refusal(standing('manager'), 'own')).toBe('Only the owner can do this. Ask ada, who owns web-1.');
    expect(refusal(standing('operator', ['commands']), 'commands')).toBeNull();
  });

  it('waits for the server to be known', () => {
    expect(refusal(undefined, 'manage')).toBeNull();
  });

  it('of several servers is that of the first that refuses', () => {
    const servers = [standing('owner'), undefined, { ...standing('viewer'), name: 'db-1' }];

    expect(refusalOfAny(servers, 'respond')).toBe('Needs the role of a responder. Ask ada, who owns db-1.');
    expect(refusalOfAny(servers.slice(0, 2), 'respond')).toBeNull();
  });

  it('of what reaches beyond one server is for everybody but its owner', () => {
    expect(refusalBeyond(standing('manager'))).toBe('Only for servers that you own. web-1 belongs to ada.');
    expect(refusalBeyond(standing('owner'))).toBeNull();
  });
});
