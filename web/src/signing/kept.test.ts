// @vitest-environment jsdom
import { beforeEach, describe, expect, it } from 'vitest';
import { forgetKey, keepKey, keepNames, keptKeys, keptNames, namesOf } from './kept';

beforeEach(() => localStorage.clear());

describe('what a browser remembers of signing', () => {
  it('are names of servers, the newest over the older ones', () => {
    keepNames(new Map([['one', 'web-1']]));
    keepNames(
      new Map([
        ['one', 'web-9'],
        ['two', 'web-2'],
      ]),
    );

    expect(Object.fromEntries(keptNames())).toEqual({ one: 'web-9', two: 'web-2' });
  });

  it('goes before what the service says now of a name', () => {
    const told = (id: string, name: string | null) => ({
      id,
      name: `server ${id}`,
      agent: name === null ? null : { signing: { name, approvals: 1 } },
    });
    keepNames(new Map([['one', 'web-1']]));

    expect(namesOf([told('one', 'db-1'), told('two', 'web-2'), told('three', null)])).toEqual([
      'web-1',
      'web-2',
      'server three',
    ]);
  });

  it('are the keys that were made here, until they are forgotten', () => {
    const key = { id: 'abc', line: 'ada sk-webauthn x host', madeAt: '2026-11-26T10:00:00Z' };
    keepKey(key);
    keepKey(key);
    expect(keptKeys()).toEqual([key]);

    forgetKey('abc');
    expect(keptKeys()).toEqual([]);
  });

  it('is nothing where somebody wrote something else there', () => {
    for (const text of ['{', '"text"', '[1, {"id": 2}]', '{"one": 3}']) {
      localStorage.setItem('signing-names', text);
      localStorage.setItem('signing-keys', text);
      expect(keptNames().size).toBe(0);
      expect(keptKeys()).toEqual([]);
    }
  });
});
