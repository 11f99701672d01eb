import { beforeEach, expect, it } from 'vitest';
import { preferences } from '../text/preferences.svelte';
import { cursorTime, resolutionText, timeLabels } from './times';

beforeEach(() => (preferences.clock = '24'));

const at = (text: string) => new Date(text).getTime() / 1000;

it('writes times as fine as the lines are apart', () => {
  const noon = at('2026-11-21T12:00:30');

  expect(timeLabels([noon], 10)).toEqual(['12:00:30']);
  expect(timeLabels([noon], 60)).toEqual(['12:00']);
});

it('writes the day where it begins', () => {
  expect(timeLabels([at('2026-11-21T23:00:00'), at('2026-11-22T00:00:00')], 3600)).toEqual(['23:00', 'Nov 22']);
  expect(timeLabels([at('2026-11-22T12:00:00')], 86_400)).toEqual(['Nov 22']);
});

it('writes months when the lines are months apart', () => {
  expect(timeLabels([at('2026-11-01T00:00:00')], 30 * 86_400)).toEqual(['Nov 2026']);
});

it('leaves the day out where it is today', () => {
  const now = at('2026-11-21T15:00:00') * 1000;

  expect(cursorTime(at('2026-11-21T12:00:30'), now)).toBe('12:00:30');
  expect(cursorTime(at('2026-11-20T12:00:30'), now)).toContain('Nov');
});

it('says how fine a chart is', () => {
  expect(resolutionText(60, true)).toBe('1 min average');
  expect(resolutionText(7200, true)).toBe('2 h average');
  expect(resolutionText(1800, true, true)).toBe('30 min peaks');
  expect(resolutionText(5, false)).toBe('5 s resolution');
  expect(resolutionText(1, false)).toBe('1 s resolution');
});
