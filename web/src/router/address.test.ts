import { expect, test } from 'vitest';
import { ownAddress } from './address';

const origin = 'https://box.example';

test('the way back leads where somebody was', () => {
  expect(ownAddress('/servers/1/keys?new=1', origin)).toBe('/servers/1/keys?new=1');
});

test('the way back never leads to another service', () => {
  for (const given of [
    '//evil.example/',
    '/\\evil.example',
    'https://evil.example/',
    'javascript:alert(1)',
    '/\t/evil.example',
  ])
    expect(ownAddress(given, origin)).toBeNull();
});

test('an address that is none leads nowhere', () => {
  expect(ownAddress(null, origin)).toBeNull();
  expect(ownAddress('', origin)).toBeNull();
});
