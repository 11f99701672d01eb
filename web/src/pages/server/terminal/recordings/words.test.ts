import { expect, it } from 'vitest';
import { speak, translated } from '../../../../text/catalogue';
import { opener, played, playTime } from './words';

it('writes a time with all its parts', () => {
  expect([0, 0.9, 59.9, 60, 63, 3600, 7205].map(playTime)).toEqual([
    '0 s',
    '0 s',
    '59 s',
    '1 min 0 s',
    '1 min 3 s',
    '1 h 0 min 0 s',
    '2 h 0 min 5 s',
  ]);
});

it('says at the end that it is the end', () => {
  expect(played(0, 3.2)).toEqual(['0 s', '4 s']);
  expect(played(3.1, 3.2)).toEqual(['3 s', '4 s']);
  expect(played(3.2, 3.2)).toEqual(['4 s', '4 s']);
});

it('says who opened a terminal in the language of the reader', async () => {
  expect([opener('ada from ::1'), opener('somebody')]).toEqual(['ada from ::1', 'somebody']);
  expect(opener(`ada\u202e\n from ::1`)).toBe('ada from ::1');
  speak('de', 'de-DE');
  await translated();
  expect(opener('ada from ::1')).toBe('ada (::1)');
  speak('en', 'en-US');
});
