// @vitest-environment jsdom
import { expect, test, vi } from 'vitest';
import type { Alert } from '../../api/types';
import { sentences } from './sentences.svelte';

vi.hoisted(() => {
  globalThis.matchMedia = () => ({ matches: false, addEventListener: () => undefined }) as unknown as MediaQueryList;
});

test('an alert has the words of the service until its sentence is there', async () => {
  const alert = {
    metric_type: 'disk',
    comparison: 'gt',
    threshold_value: 90,
    value: 90.1,
    peak_value: 96.2,
    status: 'active',
    message: 'disk /var/log is 90.1 % full on web-1, over 90 %',
    triggered_at: '2026-11-21T03:12:00.000Z',
  } as Alert;

  expect(sentences.of(alert)).toBe(alert.message);

  const { sentenceOf } = await import('./sentence');
  expect(sentenceOf(alert, Date.now())).not.toBe(alert.message);
  await vi.waitFor(() => expect(sentences.of(alert)).toContain('96'));
});
