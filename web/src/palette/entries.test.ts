// @vitest-environment jsdom
import { expect, test, vi } from 'vitest';
import type { Server } from '../api/types';
import { session } from '../session/session.svelte';
import { keyOf } from './chosen';
import { offer } from './entries';

vi.hoisted(() => {
  globalThis.matchMedia = () => ({ matches: false, addEventListener: () => undefined }) as unknown as MediaQueryList;
});

const ALL: Server['rights'] = ['containers', 'commands', 'logs', 'terminal'];
const server = (name: string, tags: string[] = [], role: Server['role'] = 'owner') =>
  ({
    id: `id-${name}`,
    name,
    host: `${name}.example`,
    tags,
    owner: { id: 'a', username: 'ada' },
    role,
    rights: role === 'owner' ? ALL : [],
  }) as unknown as Server;
const means = { signOut: vi.fn(), showKeys: vi.fn() };
const servers = [server('db-1', ['db']), server('db-2', ['db']), server('web-1', ['web'])];

const offered = (typed: string, here: string | null = null, all = servers) =>
  offer(typed, all, here, means).groups.flatMap(({ group, entries }) => entries.map(({ text }) => `${group}: ${text}`));

test('without a word it lists the parts of the server that is shown, and the pages', () => {
  expect(offered('', 'id-db-1')[0]).toBe('here: Overview');
  expect(offered('')[0]).toBe('pages: Fleet');
  expect(offered('')).toContain('pages: Wall');
  // No page is listed twice, and none that needs an id.
  expect(new Set(offered('')).size).toBe(offered('').length);
  expect(offered('')).not.toContain('pages: Server');
});

test('the parts of the account are listed, those of administrators for them alone', () => {
  const parts = () =>
    offer('', servers, null, means)
      .groups.flatMap(({ entries }) => entries.map(({ href }) => href ?? ''))
      .filter((href) => href.startsWith('/account/'));
  const all = ['security', 'notifications', 'silences', 'teams', 'tokens', 'updates', 'audit', 'about'];

  expect(parts()).toEqual(all.map((part) => `/account/${part}`));
  session.user = { is_admin: true } as typeof session.user;
  expect(parts()).toContain('/account/users');
  session.user = null;
});

test('a server comes before pages that fit less', () => {
  expect(offered('web')[0]).toBe('servers: web-1');
  expect(offered('web')).toContain('tags: Servers tagged web');
});

test('of what is said of a tag, only the tag is marked, though the other words find it', () => {
  const marked = (typed: string) =>
    offer(typed, [server('nas', ['backup'])], null, means)
      .groups.flatMap(({ entries }) => entries)
      .filter(({ group }) => group === 'tags')
      .map(({ text, at }) => at.map((index) => text[index]).join(''));

  expect(marked('d b')).toEqual(['b']);
  expect(marked('back')).toEqual(['back']);
  expect(marked('tagged back')).toEqual(['back']);
});

test('a sentence comes before names, and means the servers and tags that fit', () => {
  expect(offered('silence db-2 for 2 h')[0]).toBe('actions: Silence db-2 for 2 hours');
  expect(offered('silence tag db 30m').slice(0, 1)).toEqual(['actions: Silence tag db for 30 minutes']);
  expect(offered('run on web')).toEqual(expect.arrayContaining(['actions: Run on tag web', 'actions: Run on web-1']));
});

test('a sentence without a name means the server that is shown', () => {
  expect(offered('silence', 'id-db-2')[0]).toBe('actions: Silence db-2 for 1 hour');
});

test('a run is an address that names its servers', () => {
  const entries = offer('run db-1', servers, null, means).groups.flatMap((group) => group.entries);

  expect(entries[0]?.href).toBe('/run?server=id-db-1');
});

test('what the caller may not do on a shared server is offered with the reason', () => {
  const shared = [server('db-9', [], 'viewer')];

  const refused = ['run db-9', 'silence db-9'].map(
    (typed) => offer(typed, shared, null, means).groups.flatMap((group) => group.entries)[0]?.refused,
  );

  expect(refused).toEqual([
    'Needs the right to run commands. Ask ada, who owns db-9.',
    'Needs the role of a responder. Ask ada, who owns db-9.',
  ]);
});

test('a server and a part of it lead there', () => {
  expect(offered('web-1 logs')[0]).toBe('servers: web-1: Logs');
});

test('of very many servers a few are listed, and how many more fit is said', () => {
  const many = Array.from({ length: 10_000 }, (_, index) => server(`node-${index}`));

  const { groups, more } = offer('node', many, null, means);

  expect(groups.find(({ group }) => group === 'servers')?.entries).toHaveLength(8);
  expect(more).toBe(9_992);
});

test('no two entries have the same key, whatever servers and tags are called', () => {
  const alike = [
    server('web', ['web', 'tag web', 'a,b', 'a%2Cb']),
    { ...server('web'), id: 'id-other' },
    server('tag web', ['a', 'b']),
  ];
  for (const typed of ['', 'web', 'a b', 'tag', 'logs', 'web logs', 'silence web', 'silence', 'run web', 'theme']) {
    const keys = offer(typed, alike, 'id-web', means).groups.flatMap(({ entries }) => entries.map(keyOf));

    expect(keys.length, typed).toBeGreaterThan(0);
    expect(new Set(keys).size, typed).toBe(keys.length);
  }
});

test('what nothing fits has no groups', () => {
  expect(offer('zzzzqqq', servers, null, means)).toEqual({ groups: [], more: 0 });
});
