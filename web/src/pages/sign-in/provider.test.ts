import { expect, test } from 'vitest';
import { outcomeWords, startOf } from './provider';

test('an outcome has a sentence, also one that this page does not know', () => {
  expect(outcomeWords(null, 'Corp')).toBeNull();
  expect(outcomeWords('email_unverified', 'Corp')).toContain('Corp has not verified your email address');
  for (const unknown of ['newer', 'constructor', '__proto__', ''])
    expect(outcomeWords(unknown, 'Corp')).toBe(outcomeWords('failed', 'Corp'));
});

test('the page that was wanted is shown afterwards', () => {
  expect(startOf(null)).toBe('/api/v1/auth/oidc/start');
  expect(startOf('/')).toBe('/api/v1/auth/oidc/start');
  expect(startOf('/alerts?open=1')).toBe('/api/v1/auth/oidc/start?return_to=%2Falerts%3Fopen%3D1');
});
