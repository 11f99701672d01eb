// @vitest-environment jsdom
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { clock } from './clock.svelte';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const header = (ms: number) => new Date(ms).toUTCString();

it('a clock that agrees is left alone', () => {
  clock.heard(header(Date.now() - 1_000));

  expect(Math.abs(clock.present() - Date.now())).toBeLessThan(50);
});

it('the service is believed where a browser is hours off', () => {
  const threeHours = 3 * 3_600_000;

  clock.heard(header(Date.now() - threeHours));
  expect(Math.abs(clock.present() - (Date.now() - threeHours))).toBeLessThan(2_000);
  expect(Math.abs(clock.now - clock.present())).toBeLessThan(50);

  clock.heard(header(Date.now()));
  expect(Math.abs(clock.present() - Date.now())).toBeLessThan(50);
});

it('an answer that was slow tells a time on its way', () => {
  const now = Date.now();
  clock.heard(header(now - 10_000), now - 10_000);
  clock.heard(header(now), now - 20_000);
  expect(Math.abs(clock.present() - now)).toBeLessThan(50);

  // And is believed where it was on no time of that.
  const anHour = 3_600_000;
  clock.heard(header(now + anHour), now - 10_000);
  expect(Math.abs(clock.present() - (now + anHour))).toBeLessThan(2_000);

  clock.heard(header(now));
  expect(Math.abs(clock.present() - now)).toBeLessThan(50);
});

it('an answer without a time changes nothing', () => {
  clock.heard(null);
  clock.heard('soon');

  expect(Math.abs(clock.present() - Date.now())).toBeLessThan(50);
});
