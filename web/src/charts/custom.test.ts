import { afterEach, expect, it } from 'vitest';
import { speak } from '../text/catalogue';
import { preferences } from '../text/preferences.svelte';
import { faultsOf, fieldOf, readerOf, secondsOf } from './custom';

it('shows a time in a field and reads it again', () => {
  expect(secondsOf(fieldOf(1_795_296_007))).toBe(1_795_296_007);
  expect(secondsOf('')).toBeNull();
});

it('says what is wrong with the times that were typed', () => {
  const now = secondsOf('2026-11-21T12:00:00') ?? 0;

  expect(faultsOf('2026-11-21T10:00', '2026-11-21T11:00', now)).toEqual({ from: null, to: null });
  expect(faultsOf('2026-11-21T11:00', '2026-11-21T10:00', now).to).toMatch('later');
  expect(faultsOf('2026-11-21T13:00', '2026-11-21T14:00', now).from).toMatch('past');
  expect(faultsOf('', '', now)).toEqual({ from: 'Enter a date and a time.', to: 'Enter a date and a time.' });
});

afterEach(() => {
  speak('en', 'en-US');
  preferences.zone = 'local';
});

it('reads words by the clock and the order of dates that the reader sees', () => {
  expect(readerOf(0)).toEqual({ now: 0, zone: 'local', isMonthFirst: true });
  speak('en', 'en-GB');
  preferences.zone = 'utc';
  expect(readerOf(0)).toEqual({ now: 0, zone: 'utc', isMonthFirst: false });
});
