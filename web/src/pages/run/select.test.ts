import { describe, expect, it } from 'vitest';
import type { Server, ServerStatus } from '../../api/types';
import { choices, found, isPickable, ledBy, named, tagsOf, tally, toggled } from './select';

function entry(
  name: string,
  tags: string[],
  status: ServerStatus = 'online',
  capabilities = ['metrics', 'commands'],
  rights = ['commands'],
) {
  const agent = status === 'pending' ? null : { capabilities };
  const standing = { owner: { id: 'a', username: 'ada' }, role: 'operator', rights };
  return { server: { id: name, name, host: `${name}.lan`, tags, agent, ...standing } as unknown as Server, status };
}

const all = choices([
  entry('web-10', ['web', 'eu']),
  entry('web-2', ['web']),
  entry('db', ['eu'], 'offline'),
  entry('new', [], 'pending'),
  entry('closed', ['web'], 'online', ['metrics']),
  entry('shared', [], 'online', ['metrics', 'commands'], ['logs']),
]);

describe('what can be picked', () => {
  it('puts those first that can run a command or are only away, and says why the others cannot', () => {
    expect(all.map((choice) => [choice.name, choice.why])).toEqual([
      ['db', 'offline'],
      ['web-2', null],
      ['web-10', null],
      ['closed', 'policy'],
      ['new', 'pending'],
      ['shared', 'right'],
    ]);
  });

  it('keeps the place of a server that goes away for a moment', () => {
    const places = (status: ServerStatus) => {
      const some = choices([entry('a', []), entry('b', [], status), entry('c', []), entry('d', [], 'pending')]);
      return some.map((choice) => [choice.name, isPickable(choice)]);
    };

    expect(places('offline')).toEqual(places('online'));
    expect(places('offline')).toEqual([
      ['a', true],
      ['b', true],
      ['c', true],
      ['d', false],
    ]);
  });

  it('says whom to ask where the caller may not', () => {
    expect(all.find((choice) => choice.name === 'shared')?.refused).toBe(
      'Needs the right to run commands. Ask ada, who owns shared.',
    );
    expect(all[0]?.refused).toBeNull();
  });

  it('finds by words of name, host and tags', () => {
    expect(found(all, 'EU web').map((choice) => choice.name)).toEqual(['web-10']);
    expect(found(all, ' ').length).toBe(6);
  });

  it('counts for a tag only those that can run a command', () => {
    expect(tagsOf(all)).toEqual([
      { tag: 'eu', ids: ['web-10'], all: 2 },
      { tag: 'web', ids: ['web-2', 'web-10'], all: 3 },
    ]);
  });

  it('counts what can run commands now, and what is picked, which is never more', () => {
    expect(tally(all, new Set())).toEqual({ count: 0, total: 2 });
    expect(tally(all, new Set(['db', 'web-2']))).toEqual({ count: 2, total: 3 });
    // What cannot be picked any more stays picked until somebody clears it; what is deleted is nowhere to be seen.
    expect(tally(all, new Set(['closed', 'deleted']))).toEqual({ count: 1, total: 3 });
    expect(tally(choices([entry('db', [], 'offline')]), new Set(['db']))).toEqual({ count: 1, total: 1 });
  });

  it('puts those first that lead, each part in its order', () => {
    const names = ledBy(all, new Set(['new', 'web-10'])).map((choice) => choice.name);
    expect(names).toEqual(['web-10', 'new', 'db', 'web-2', 'closed', 'shared']);
  });

  it('names eight servers, and how many more there are', () => {
    const names = [...'abcdefghij'];
    expect(named(names.slice(0, 2))).toBe('a and b');
    expect(named(names.slice(0, 8))).toBe('a, b, c, d, e, f, g, and h');
    expect(named(names)).toBe('a, b, c, d, e, f, g, h, and 2 more');
  });

  it('adds what is missing, and takes away what was picked whole', () => {
    expect([...toggled(new Set(['a']), ['a', 'b'])]).toEqual(['a', 'b']);
    expect([...toggled(new Set(['a', 'b', 'c']), ['a', 'b'])]).toEqual(['c']);
    expect([...toggled(new Set(['a']), [])]).toEqual(['a']);
  });
});
