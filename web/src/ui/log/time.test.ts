import { afterEach, expect, it } from 'vitest';
import { preferences } from '../../text/preferences.svelte';
import { clockTime } from './time';

afterEach(() => {
  preferences.clock = 'auto';
  preferences.zone = 'local';
});

it('a line has its time on the clock that was chosen', () => {
  const at = Date.parse('2026-11-21T21:43:49.117Z');
  preferences.zone = 'utc';

  preferences.clock = '24';
  expect(clockTime(at)).toEqual({ day: '11-21', clock: '21:43:49', ms: '.117', half: '' });
  preferences.clock = '12';
  expect(clockTime(at)).toEqual({ day: '11-21', clock: '09:43:49', ms: '.117', half: ' PM' });
});
