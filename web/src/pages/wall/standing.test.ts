import { expect, test } from 'vitest';
import type { Alert } from '../../api/types';
import { rank, reason, standing } from './standing';

function alert(severity: Alert['severity']): Alert {
  return { severity, metric_type: 'cpu', comparison: 'gt', threshold_value: 90, peak_value: 99 } as Alert;
}

test('a server stands as its worst does', () => {
  expect(standing('online', false, [], false)).toBe('fine');
  expect(standing('online', false, [alert('info')], false)).toBe('fine');
  expect(standing('online', false, [alert('warning')], false)).toBe('warning');
  expect(standing('online', true, [alert('warning')], false)).toBe('silent');
  expect(standing('online', true, [alert('critical'), alert('warning')], true)).toBe('critical');
  expect(standing('offline', true, [alert('critical')], false)).toBe('offline');
  expect(standing('pending', true, [], true)).toBe('pending');
});

test('a server that has not come back to a service that has just started is in no trouble', () => {
  expect(standing('offline', true, [alert('critical')], true)).toBe('returning');
  expect(rank('returning')).toBeNull();
  expect(reason('returning', [], 0)).toBe('Reconnecting');
});

test('who is away comes before who is in trouble, and who is fine or never came is not listed', () => {
  expect((['offline', 'critical', 'silent', 'warning'] as const).map(rank)).toEqual([0, 1, 2, 3]);
  expect([rank('fine'), rank('pending')]).toEqual([null, null]);
});

test('one alert says itself why; several are counted', () => {
  const one = alert('critical');

  expect(reason('critical', [one, alert('warning')], 0)).toBe('CPU above 90 % (peak 99 %)');
  expect(reason('critical', [one, one], 0)).toBe('2 critical alerts');
  expect(reason('offline', [one], 0)).toBe('Offline');
});
