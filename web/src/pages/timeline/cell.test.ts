// @vitest-environment jsdom
import { beforeEach, expect, test, vi } from 'vitest';
import { preferences } from '../../text/preferences.svelte';
import { cellText } from './cell';
import { Heat } from './heat.svelte';

vi.hoisted(() => {
  globalThis.matchMedia = () => ({ matches: false, addEventListener: () => undefined }) as unknown as MediaQueryList;
});

beforeEach(() => (preferences.clock = '24'));

const at = (text: string) => new Date(text).getTime() / 1000;
const now = at('2026-11-21T12:00:00') * 1000;

test('a cell is named by its two ends, with the day unless it is today', () => {
  expect(cellText({ from: at('2026-11-21T07:50:00'), to: at('2026-11-21T08:00:00') }, now)).toBe('07:50 to 08:00');
  expect(cellText({ from: at('2026-11-20T07:50:00'), to: at('2026-11-20T08:00:00') }, now)).toBe(
    'Fri, Nov 20, 07:50 to 08:00',
  );
  expect(cellText({ from: at('2026-11-21T00:00:00'), to: at('2026-11-22T00:00:00') }, now)).toBe(
    '00:00 to Sun, Nov 22, 00:00',
  );
});

test('before anything was read, a cell is a minute', () => {
  expect(new Heat().cellAt(125)).toEqual({ from: 120, to: 180 });
});
