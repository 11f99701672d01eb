// @vitest-environment jsdom
import { expect, test } from 'vitest';
import { bytesOf, subscribed } from './push';

test('what is kept of a subscription is read whole or not at all', () => {
  const known = { user: 'u', channel: 'c', endpoint: 'https://push.example.com/x' };

  expect(subscribed(JSON.stringify(known))).toEqual(known);
  for (const text of [
    null,
    '',
    'on',
    'null',
    '[]',
    '{"user":"u","channel":"c"}',
    '{"user":1,"channel":"c","endpoint":"e"}',
  ])
    expect(subscribed(text)).toBeNull();
});

test('a key is read in the alphabet of addresses', () => {
  expect([...bytesOf('-_8A')]).toEqual([0xfb, 0xff, 0x00]);
});
