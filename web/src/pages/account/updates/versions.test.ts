import { expect, test } from 'vitest';
import { isOlder } from './versions';

test('versions are ordered as semver.org orders them', () => {
  const ascending = [
    '0.9.10',
    '1.0.0-alpha',
    '1.0.0-alpha.1',
    '1.0.0-alpha.beta',
    '1.0.0-beta.2',
    '1.0.0-beta.11',
    '1.0.0-rc.1',
    '1.0.0',
    '1.0.10',
    '1.2.0',
    '10.0.0',
  ];

  for (const [index, version] of ascending.entries()) {
    for (const [place, other] of ascending.entries()) expect(isOlder(version, other)).toBe(index < place);
  }
});

test('the build of a version makes it no older', () => {
  expect(isOlder('1.0.0+1', '1.0.0+2')).toBe(false);
  expect(isOlder('1.0.0+9', '1.0.1')).toBe(true);
});

test('what is no version is not older than anything', () => {
  expect(isOlder('dev', '1.0.0')).toBe(false);
  expect(isOlder('1.0.0', '2.0')).toBe(false);
});
