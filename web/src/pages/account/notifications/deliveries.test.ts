import { expect, test } from 'vitest';
import { standing, untilNext } from './deliveries';

test('a message that was refused once looks different from one that waits', () => {
  expect(standing({ status: 'pending', attempts: 0 }).tone).toBe('accent');
  expect(standing({ status: 'pending', attempts: 3 })).toEqual({ label: 'retrying', tone: 'warn' });
  expect(standing({ status: 'failed', attempts: 9 }).tone).toBe('bad');
  expect(standing({ status: 'sent', attempts: 1 }).tone).toBe('ok');
  expect(standing({ status: 'sent', attempts: 2, outcome: 'perhaps_delivered' })).toEqual({
    label: 'possibly sent',
    tone: 'warn',
  });
  expect(standing({ status: 'sent', attempts: 2, outcome: 'partly_delivered' })).toEqual({
    label: 'partly sent',
    tone: 'warn',
  });
});

test('the next attempt is shown relative to now', () => {
  const now = Date.parse('2026-11-21T10:00:00Z');

  expect(untilNext('2026-11-21T10:00:40Z', now)).toBe('in 40 s');
  expect(untilNext('2026-11-21T10:05:00Z', now)).toBe('in 5 min');
  expect(untilNext('2026-11-21T12:00:00Z', now)).toBe('in 2 h');
  expect(untilNext('2026-11-21T09:59:00Z', now)).toBe('now');
});
