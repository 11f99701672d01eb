import { describe, expect, it } from 'vitest';
import { inAddress, isInput, pastedSignatures, payloadOf, readPayload, sha256, signedOf, spanFrom } from './payload';
import { base64Url, fromBase64Url } from './base64';

const NOW = Date.parse('2026-11-26T10:01:00Z');
const TEN_MINUTES = { not_before: '2026-11-26T10:00:00.000Z', expires_at: '2026-11-26T10:10:00.000Z' };
const NONCE = '4b1f8e0a6c2d4e7f9a3b5c7d9e1f2a4b';

describe('the payload of somebody else', () => {
  const written = {
    v: 1,
    servers: ['web-1'],
    kind: 'command',
    command: 'cat',
    timeout_seconds: 60,
    ...TEN_MINUTES,
    nonce: NONCE,
  };

  it('of a command is read as it is', async () => {
    const text = await payloadOf(
      { kind: 'command', command: 'cat', stdin: 'abc', timeoutSeconds: 60 },
      ['web-1'],
      spanFrom(NOW, 10),
    );
    const read = readPayload(text);

    expect(read).toMatchObject({
      command: 'cat',
      servers: ['web-1'],
      timeoutSeconds: 60,
      notBefore: TEN_MINUTES.not_before,
      expiresAt: TEN_MINUTES.expires_at,
    });
    expect(await isInput('abc', read?.stdinHash ?? null)).toBe(true);
    expect(await isInput('abd', read?.stdinHash ?? null)).toBe(false);
    expect(await isInput(null, read?.stdinHash ?? null)).toBe(false);
    expect(await isInput('abc', null)).toBe(false);
    expect(await isInput(null, null)).toBe(true);
  });

  it('means an empty input as it means none', async () => {
    const empty = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

    for (const stdin of [null, '']) {
      expect(await isInput(stdin, null)).toBe(true);
      expect(await isInput(stdin, empty)).toBe(true);
    }
    expect(await isInput('abc', empty)).toBe(false);
  });

  it('of anything else is not, so that nobody signs it unread', () => {
    const wrong = [
      { ...written, v: 2 },
      { ...written, kind: 'terminal' },
      { ...written, repeat: { cron: '* * * * *', time_zone: 'UTC' } },
      { ...written, servers: 'web-1' },
      { ...written, command: undefined },
      { ...written, expires_at: 1 },
    ];

    expect(readPayload(JSON.stringify(written))?.command).toBe('cat');
    expect([...wrong.map((one) => JSON.stringify(one)), '', '[]', '{'].map(readPayload)).toEqual(Array(9).fill(null));
  });
});

describe('the payload', () => {
  it('of what recurs says when, in UTC, and holds until its end', async () => {
    const repeat = { cron: '0 3 * * *', until: null };
    const deed = { kind: 'command', command: 'true', stdin: null, timeoutSeconds: 1, repeat } as const;
    const text = await payloadOf(deed, ['web-1'], spanFrom(NOW, 30 * 24 * 60));

    expect(JSON.parse(text)).toMatchObject({
      repeat: { cron: '0 3 * * *', time_zone: 'UTC' },
      not_before: '2026-11-26T10:00:00.000Z',
      expires_at: '2026-12-26T10:00:00.000Z',
    });
  });

  it('of a command names its servers once each, its input by the hash, and its times', async () => {
    const deed = { kind: 'command', command: 'tee "ü"', stdin: 'abc', timeoutSeconds: 60 } as const;

    const text = await payloadOf(deed, ['web-1', 'web-2', 'web-1'], spanFrom(NOW, 10), NONCE);

    expect(JSON.parse(text)).toEqual({
      v: 1,
      servers: ['web-1', 'web-2'],
      kind: 'command',
      command: 'tee "ü"',
      stdin_sha256: 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
      timeout_seconds: 60,
      ...TEN_MINUTES,
      nonce: NONCE,
    });
    expect(text.endsWith('}\n')).toBe(true);
  });

  it('has the fields of its kind alone: agents refuse others', async () => {
    const fields = async (deed: Parameters<typeof payloadOf>[0]) =>
      Object.keys(JSON.parse(await payloadOf(deed, ['web-1'], spanFrom(NOW, 10))) as object);
    const rest = ['not_before', 'expires_at', 'nonce'];

    expect(await fields({ kind: 'command', command: 'true', stdin: null, timeoutSeconds: 1 })).toEqual([
      'v',
      'servers',
      'kind',
      'command',
      'timeout_seconds',
      ...rest,
    ]);
    expect(await fields({ kind: 'terminal', timeoutSeconds: 900 })).toEqual([
      'v',
      'servers',
      'kind',
      'timeout_seconds',
      ...rest,
    ]);
    expect(await fields({ kind: 'container', action: 'restart web' })).toEqual([
      'v',
      'servers',
      'kind',
      'action',
      ...rest,
    ]);
  });

  it('never has the nonce of another', async () => {
    const deed = { kind: 'terminal', timeoutSeconds: 900 } as const;
    const nonces = new Set<string>();
    for (let index = 0; index < 50; index += 1) {
      const payload = JSON.parse(await payloadOf(deed, ['web-1'], spanFrom(NOW, 10))) as { nonce: string };
      expect(payload.nonce).toMatch(/^[0-9a-f]{32}$/);
      nonces.add(payload.nonce);
    }

    expect(nonces.size).toBe(50);
  });
});

describe('what a request carries', () => {
  const signature = { type: 'sshsig', signature: 'text' } as const;

  it('is the bytes of the payload in base64 with padding', () => {
    expect(signedOf('{"command":"ü"}\n', [signature])).toEqual({
      payload: 'eyJjb21tYW5kIjoiw7wifQo=',
      signatures: [signature],
    });
  });

  it('stands in an address in base64url without padding', () => {
    const signed = signedOf('???>>>', [signature]);

    const text = inAddress(signed);

    expect(text).toMatch(/^[A-Za-z0-9_-]+$/);
    expect(JSON.parse(new TextDecoder().decode(fromBase64Url(text)))).toEqual(signed);
  });
});

describe('pasted SSH signatures', () => {
  const one = '-----BEGIN SSH SIGNATURE-----\nU1NIU0lH\nAAAA\n-----END SSH SIGNATURE-----';

  it('are found among whatever was copied with them', () => {
    const pasted = `$ cat payload.json.sig\r\n${one}\n\n${one.replace('AAAA', 'BBBB')}\n$ `;

    expect(pastedSignatures(pasted)).toEqual([
      { type: 'sshsig', signature: `${one}\n` },
      { type: 'sshsig', signature: `${one.replace('AAAA', 'BBBB')}\n` },
    ]);
  });

  it('are whole or none', () => {
    for (const text of ['', 'U1NIU0lH', one.slice(0, -4), one.replace('SSH', 'PGP'), one.replace('AAAA', '<b>')])
      expect(pastedSignatures(text)).toEqual([]);
  });
});

it('the challenge of a passkey is the SHA-256 of the bytes', async () => {
  expect(base64Url(await sha256('abc'))).toBe('ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0');
});
