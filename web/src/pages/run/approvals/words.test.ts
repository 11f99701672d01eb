// @vitest-environment jsdom
import { expect, it } from 'vitest';
import { hasSigned } from '../../../live/waiting.svelte';
import { refusedWords, signerWords, someOf, statusAt } from './words';

it('what waits has expired when its time has come, also before the service says so', () => {
  const waits = { status: 'awaiting_approval', expires_at: '2026-11-26T10:00:00Z' } as const;
  const at = Date.parse(waits.expires_at);

  expect(statusAt(waits, at - 1)).toBe('awaiting_approval');
  expect(statusAt(waits, at)).toBe('expired');
  expect(statusAt({ ...waits, status: 'approved' }, at)).toBe('approved');
});

it('somebody has signed by name, or with a passkey of the account', () => {
  const ada = { id: 'a1', username: 'ada' };
  const by = (signer: string, username: string) => ({ signatures: [{ signer, username, signed_at: '' }] });

  expect(hasSigned(by('SHA256:x', 'ada'), ada)).toBe(true);
  expect(hasSigned(by('passkey of a1', 'ada before'), ada)).toBe(true);
  expect(hasSigned(by('passkey of b2', 'ben'), ada)).toBe(false);
  expect(hasSigned(by('SHA256:x', 'ada'), null)).toBe(false);
});

it('signers have the fingerprint of their SSH key, or a passkey', () => {
  expect(signerWords('SHA256:abc')).toBe('SSH key SHA256:abc');
  expect(signerWords('passkey of 019a')).toBe('with a passkey');
});

it('what agents refused says who has to sign', () => {
  expect(refusedWords('unknown_signer')).toContain('know none of these signers');
  expect(refusedWords('not_enough_approvals')).toContain('One more person has to sign');
});

it('a single name is shown and not counted', () => {
  expect(someOf([1, 2, 3, 4, 5])).toEqual({ shown: [1, 2, 3, 4, 5], more: 0 });
  expect(someOf([1, 2, 3, 4, 5, 6])).toEqual({ shown: [1, 2, 3, 4], more: 2 });
});
