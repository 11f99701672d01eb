import { expect, it } from 'vitest';
import { isLike } from './names';

it.each([
  ['web-1', 'web-1', true],
  ['web-1', 'web-12', false],
  ['web-*', 'web-12', true],
  ['web-*', 'db', false],
  ['*', '', true],
  ['', '', true],
  ['', 'a', false],
  ['we?-1', 'web-1', true],
  ['?', '', false],
  ['*-api-*', 'shop-api-2', true],
  ['*-api', 'shop-api-2', false],
  ['a*a', 'a', false],
  ['a**b', 'ab', true],
  ['*ab', 'aab', true],
  ['web.1', 'web-1', false],
])('%s is like %s: %s', (pattern, name, expected) => {
  expect(isLike(pattern, name)).toBe(expected);
});
