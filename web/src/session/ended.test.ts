import { expect, test } from 'vitest';
import { endWords } from '../pages/sign-in/ended';
import { endOf, isByItself } from './ended';

test('what the service refuses a refresh for says how the sign-in ended', () => {
  expect(endOf('token_revoked', true)).toBe('elsewhere');
  expect(endOf('token_reused', true)).toBe('reused');
  expect(endOf('token_expired', false)).toBe('expired');
});

test('a page that is loaded without a cookie has lost nothing', () => {
  expect(endOf('token_invalid', false)).toBeNull();
  expect(endOf('token_invalid', true)).toBe('expired');
});

test('only signing out by hand is no news', () => {
  expect(isByItself('by-hand')).toBe(false);
  expect(isByItself('expired')).toBe(true);
  for (const words of Object.values(endWords)) expect(words()).toMatch(/\.$/);
});
