import { describe, expect, it } from 'vitest';
import { publicKeyOf } from './cose';
import { isSignerName, signerLine } from './signer';

const HAS_CREDENTIAL = 0x45;
const WITH_EXTENSIONS = 0xc5;

/** A key of P-256: a map of five, whose coordinates are 32 bytes each. */
const KEY = [
  0xa5,
  0x01,
  0x02,
  0x03,
  0x26,
  0x20,
  0x01,
  0x21,
  0x58,
  0x20,
  ...Array.from({ length: 32 }, (_, index) => index),
  0x22,
  0x58,
  0x20,
  ...Array.from({ length: 32 }, (_, index) => 255 - index),
];

function data(flags: number, id: number[], ...rest: number[]): Uint8Array {
  const head = [...Array<number>(32).fill(7), flags, 0, 0, 0, 1, ...Array<number>(16).fill(9)];
  return Uint8Array.from([...head, id.length >> 8, id.length & 255, ...id, ...rest]);
}

describe('the public key of a new passkey', () => {
  it('stands after the id, whatever its length', () => {
    for (const length of [1, 16, 300])
      expect([...(publicKeyOf(data(HAS_CREDENTIAL, Array<number>(length).fill(1), ...KEY)) ?? [])]).toEqual(KEY);
  });

  it('ends before the extensions', () => {
    expect([...(publicKeyOf(data(WITH_EXTENSIONS, [1], ...KEY, 0xa1, 0x61, 0x61, 0xf5)) ?? [])]).toEqual(KEY);
  });

  it('is missing where there is no credential, and where it is cut', () => {
    expect(publicKeyOf(data(0x05, [1], ...KEY))).toBeNull();
    for (let length = 0; length < data(HAS_CREDENTIAL, [1], ...KEY).length; length += 1)
      expect(publicKeyOf(data(HAS_CREDENTIAL, [1], ...KEY).subarray(0, length))).toBeNull();
  });

  it('is missing where the bytes nest without end or have no length', () => {
    expect(publicKeyOf(data(HAS_CREDENTIAL, [1], ...Array<number>(100).fill(0x81)))).toBeNull();
    expect(publicKeyOf(data(HAS_CREDENTIAL, [1], 0xbf, 0xff))).toBeNull();
  });
});

describe('the line of a signer', () => {
  it('has the name, the key in base64url and the host', () => {
    expect(signerLine('ada@example.org', Uint8Array.from([0xfb, 0xff]), 'box.example.org')).toBe(
      'ada@example.org sk-webauthn -_8 box.example.org',
    );
  });

  it('takes no name that would be read as something else', () => {
    expect(isSignerName('ada@example.org')).toBe(true);
    for (const name of ['', 'a b', 'a,b', '*', 'a"b', '#a', '!a', 'a\nb']) expect(isSignerName(name)).toBe(false);
  });
});
