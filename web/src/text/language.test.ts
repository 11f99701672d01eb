import { afterEach, expect, it } from 'vitest';
import * as units from '#messages/units';
import { bytes, duration, list, number, percent } from '../lib/format';
import { ago } from '../lib/times';
import { speak, translated } from './catalogue';
import { nameOf, spokenOf } from './language';

afterEach(() => speak('en', 'en-US'));

it('the first language of the browser that there is is spoken, with the region of its reader', () => {
  expect(spokenOf(null, ['de-AT', 'en-US'])).toEqual({ language: 'de', locale: 'de-AT' });
  expect(spokenOf(null, ['fr-FR', 'en-GB', 'de'])).toEqual({ language: 'en', locale: 'en-GB' });
  expect(spokenOf(null, ['fr'])).toEqual({ language: 'en', locale: 'en' });
  expect(spokenOf(null, [])).toEqual({ language: 'en', locale: 'en' });
});

it('a language that was chosen is spoken whatever the browser wants', () => {
  expect(spokenOf('de', ['en-US'])).toEqual({ language: 'de', locale: 'de' });
  expect(spokenOf('de', ['en-US', 'de-CH'])).toEqual({ language: 'de', locale: 'de-CH' });
  expect(spokenOf('xx', ['de'])).toEqual({ language: 'de', locale: 'de' });
});

it('a language is named as those who speak it do', () => {
  expect([nameOf('en'), nameOf('de')]).toEqual(['English', 'Deutsch']);
});

it('texts are English until another language has come', async () => {
  speak('de', 'de-DE');
  expect(units.never()).toBe('never');

  await translated();

  expect(units.never()).toBe('nie');
  expect(units.secondsAgo({ count: 12 })).toBe('vor 12 s');
});

it('numbers, sizes and durations follow the language', async () => {
  speak('de', 'de-DE');
  await translated();

  expect([bytes(1.5 * 1024 ** 3), percent(12.34, 1), number(1234.5), duration(9_940)]).toEqual([
    '1,50 GiB',
    '12,3 %',
    '1.234,5',
    '9,9 s',
  ]);
  expect(list(['a', 'b', 'c'])).toBe('a, b und c');
  expect(ago(0, 120_000)).toBe('vor 2 min');
});
