import { describe, expect, test } from 'vitest';
import { choiceOf, isNarrowed, usualView, written } from './choice';

function choice(address: string) {
  return choiceOf(new URLSearchParams(address), 'cards');
}

test('a bare address shows everything by name, in the view that was used last', () => {
  expect(choiceOf(new URLSearchParams(), 'table')).toEqual({
    view: 'table',
    search: '',
    status: null,
    tags: [],
    of: null,
    sort: 'name',
    isReversed: false,
    isGrouped: false,
  });
});

test('an address says it all', () => {
  expect(choice('view=table&q=web+1&status=offline&tags=eu,blue&of=shared&sort=cpu&order=reversed&group=tag')).toEqual({
    view: 'table',
    search: 'web 1',
    status: 'offline',
    tags: ['eu', 'blue'],
    of: 'shared',
    sort: 'cpu',
    isReversed: true,
    isGrouped: true,
  });
});

test('what an address cannot mean is as if it were not there', () => {
  expect(choice('view=list&status=asleep&of=nobody&sort=colour&order=up&tags=,')).toEqual(choice(''));
});

describe('tags in an address', () => {
  test('are read as they were written, whatever is in them', () => {
    for (const tags of [['a'], ['a', 'b'], ['a,b', 'c'], ['100 %', '%2C'], ['ü & ö', 'x=y']]) {
      const query = new URLSearchParams({ tags: written(tags) ?? '' });
      expect(choice(query.toString()).tags).toEqual(tags);
    }
  });

  test('are not there when there are none', () => {
    expect(written([])).toBeNull();
  });

  test('that are broken are taken as they are', () => {
    expect(choiceOf(new URLSearchParams({ tags: '100%' }), 'cards').tags).toEqual(['100%']);
  });
});

test('a search, a status or a tag leaves something out; blanks and an order do not', () => {
  expect(['q=a', 'status=online', 'tags=a'].map((address) => isNarrowed(choice(address)))).toEqual([true, true, true]);
  expect(['q=+', 'sort=cpu&order=reversed', 'group=tag'].map((address) => isNarrowed(choice(address)))).toEqual([
    false,
    false,
    false,
  ]);
});

test('a dozen servers are cards, more are a table', () => {
  expect([0, 12, 13, 10_000].map(usualView)).toEqual(['cards', 'cards', 'table', 'table']);
});
