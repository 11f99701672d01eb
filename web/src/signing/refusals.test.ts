import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { REASONS, reasonOf, SAID, type Reason } from './refusals';

/** The sentences of a Rust file, as they are said. */
function sentences(path: string): string[] {
  const text = readFileSync(`${import.meta.dirname}/../../../${path}`, 'utf8').replace(/\\\n\s*/g, '');
  return [...text.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, inside]) => (inside ?? '').replace(/\{[^}]*\}/g, 'x'));
}

describe('a refusal that has a sentence alone', () => {
  it('is known by what agents say', () => {
    const refused = (detail: string) => reasonOf({ code: 'agent_refused', detail });

    expect(refused('This server, `web-1`, runs what its operators have signed only.')).toBe('not_signed');
    expect(refused('No signature is by a signer whom this server knows: compare the key.')).toBe('unknown_signer');
    expect(refused('The signed payload is for other servers than `web-1`.')).toBe('wrong_server');
    expect(refused('What was signed has run already: sign it again.')).toBe('replayed');
    expect(refused('1 of 2 signers have signed, who have to be different people.')).toBe('not_enough_approvals');
    expect(refused('This agent does not run commands.')).toBeNull();
    expect(reasonOf({ code: 'agent_offline', detail: 'what was signed has run already' })).toBeNull();
  });

  it('is known by its words where its reason is not about signatures', () => {
    const detail = 'What was signed has run already: sign it again.';
    const other = 'updates_off' as string as Reason;

    expect(reasonOf({ code: 'agent_refused', detail: 'No.', reason: 'expired' })).toBe('expired');
    expect(reasonOf({ code: 'agent_refused', detail: 'No.', reason: other })).toBeNull();
    expect(reasonOf({ code: 'agent_refused', detail, reason: other })).toBe('replayed');
  });

  it('is known as long as agents say it so', () => {
    const said = ['signing/src/verdict.rs', 'agent/src/signed/mod.rs', 'agent/src/signed/nonces.rs'].flatMap(sentences);

    for (const [reason, patterns] of Object.entries(SAID)) {
      for (const pattern of patterns)
        expect(
          said.filter((one) => pattern.test(one)),
          `${reason} ${pattern}`,
        ).not.toEqual([]);
    }
  });

  it('has words and help, each its own', () => {
    const words = Object.keys(REASONS).flatMap((reason) => {
      const { title, help } = REASONS[reason as Reason];
      return [title(), help()];
    });

    expect(new Set(words).size).toBe(12);
  });
});
