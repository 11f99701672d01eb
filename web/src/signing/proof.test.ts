import { describe, expect, it } from 'vitest';
import { proofOf } from './proof';
import { signedOf } from './payload';

/** Of `ssh-keygen -Y sign` with an Ed25519 key. */
const KEY = Uint8Array.from([0, 0, 0, 11, ...new TextEncoder().encode('ssh-ed25519'), 0, 0, 0, 3, 1, 2, 3]);
const BLOB = Uint8Array.from([
  ...new TextEncoder().encode('SSHSIG'),
  0,
  0,
  0,
  1,
  0,
  0,
  0,
  KEY.length,
  ...KEY,
  0,
  0,
  0,
  0,
]);
const ARMORED = `-----BEGIN SSH SIGNATURE-----\n${btoa(String.fromCharCode(...BLOB))}\n-----END SSH SIGNATURE-----\n`;
const PAYLOAD = '{"servers":["web-1","büro"],"expires_at":"2026-11-26T10:10:00Z"}';

describe('what an entry keeps of signatures', () => {
  it('says which keys signed, what for, and until when', () => {
    const signed = signedOf(PAYLOAD, [
      { type: 'sshsig', signature: ARMORED },
      { type: 'webauthn', client_data_json: 'a', authenticator_data: 'b', signature: 'c' },
    ]);

    const proof = proofOf(signed);

    expect(proof?.payload).toBe(PAYLOAD);
    expect(proof?.servers).toEqual(['web-1', 'büro']);
    expect(proof?.expiresAt).toBe('2026-11-26T10:10:00Z');
    const [ssh, passkey] = proof?.signers ?? [];
    expect(ssh).toMatchObject({ kind: 'ssh', type: 'ssh-ed25519' });
    expect(ssh?.kind === 'ssh' && [...ssh.key]).toEqual([...KEY]);
    expect(passkey).toEqual({ kind: 'passkey' });
  });

  it('takes whatever somebody sent for what it is', () => {
    const strange = [
      { type: 'sshsig', signature: 'text' },
      { type: 'sshsig', signature: ARMORED.replace('U1NIU0lH', 'AAAAAAAA') },
      { type: 'later' },
      null,
    ];

    expect(proofOf({ payload: btoa('no JSON'), signatures: strange })).toEqual({
      payload: 'no JSON',
      servers: [],
      expiresAt: null,
      signers: strange.map(() => ({ kind: 'unknown' })),
    });
    for (const signed of [undefined, null, 'text', {}, { payload: '!', signatures: [] }, { payload: 'YQ==' }])
      expect(proofOf(signed)).toBeNull();
  });
});
