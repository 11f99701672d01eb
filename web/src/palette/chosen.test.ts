import { expect, test } from 'vitest';
import { chosenAt, keyOf, placeOf } from './chosen';
import type { Entry, Group } from './entries';

const page = (href: string, group: Group = 'pages'): Entry => ({ group, icon: 'grid', text: href, href });
const pages = [page('/'), page('/alerts'), page('/run')];
const here = [page('/servers/a', 'here'), page('/servers/a/logs', 'here')];

test('until somebody chooses, it is the first, whatever comes before it', () => {
  expect(placeOf(null, pages)).toBe(0);
  expect(placeOf(null, [...here, ...pages])).toBe(0);
});

test('what was chosen stays chosen wherever it stands', () => {
  const choice = chosenAt(1, pages);

  expect(placeOf(choice, pages)).toBe(1);
  expect(placeOf(choice, [...here, ...pages])).toBe(3);
  expect(placeOf(choice, pages.slice(1))).toBe(0);
  // Its text and what is said beside it may change.
  const renamed = pages.map((entry) => ({ ...entry, text: 'renamed', note: 'new' }));
  expect(placeOf(choice, [...here, ...renamed])).toBe(3);
});

test('where what was chosen is gone, it is what stands in its place, or last', () => {
  const choice = chosenAt(2, [...here, ...pages]);

  expect(placeOf(choice, [...here, ...pages.slice(1)])).toBe(2);
  expect(placeOf(choice, here)).toBe(1);
  expect(placeOf(choice, [])).toBe(-1);
});

test('what is beyond the ends is the first and the last, and nothing is chosen of nothing', () => {
  expect(chosenAt(-6, pages)).toEqual({ key: keyOf(page('/')), place: 0 });
  expect(chosenAt(9, pages)).toEqual({ key: keyOf(page('/run')), place: 2 });
  expect(chosenAt(0, [])).toBeNull();
  expect(placeOf(null, [])).toBe(-1);
});

test('entries with the same text or address have different keys where their group or id differs', () => {
  const silence = (id: string): Entry => ({ group: 'actions', icon: 'moon', text: 'Silence web for 1 hour', id });
  const keys = [page('/'), page('/', 'here'), silence('a'), silence('b')].map(keyOf);

  expect(new Set(keys).size).toBe(4);
});
