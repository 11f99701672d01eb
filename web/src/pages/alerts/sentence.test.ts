// @vitest-environment jsdom
import { afterEach, expect, test, vi } from 'vitest';
import type { Alert } from '../../api/types';
import { speak, translated } from '../../text/catalogue';
import { sentenceOf, titleOf } from './sentence';
import { sentences } from './sentences.svelte';

vi.hoisted(() => {
  globalThis.matchMedia = () => ({ matches: false, addEventListener: () => undefined }) as unknown as MediaQueryList;
});

const FIRED = '2026-11-21T03:12:00.000Z';
const HOUR = 3_600_000;
const NOW = Date.parse(FIRED) + 21 * HOUR;

const alert = (more: Partial<Alert>) =>
  ({
    metric_type: 'disk',
    comparison: 'gt',
    threshold_value: 90,
    value: 90.1,
    peak_value: 96.2,
    status: 'active',
    message: 'disk /var/log is 90.1 % full on web-1, over 90 %',
    triggered_at: FIRED,
    ...more,
  }) as Alert;

const offline = (more: Partial<Alert> = {}) =>
  alert({
    metric_type: 'offline',
    threshold_value: 120,
    value: 120,
    peak_value: 120,
    message: 'edge-sao-1 has been offline for 2 min',
    ...more,
  });

afterEach(() => speak('en', 'en-US'));

test('a crossed limit stands with its worst value, and not with the first', () => {
  expect(sentenceOf(alert({ target: '/var/log' }), NOW)).toBe('Disk /var/log above 90 % (peak 96.2 %)');
  expect(sentenceOf(alert({ worst_target: '/srv' }), NOW)).toBe('Disk /srv above 90 % (peak 96.2 %)');
  expect(sentenceOf(alert({ metric_type: 'load', comparison: 'lte', threshold_value: 1, peak_value: 0.2 }), NOW)).toBe(
    'Load at most 1 (lowest 0.2)',
  );
  expect(sentenceOf(alert({ metric_type: 'network_in', threshold_value: 1024, peak_value: 2048 }), NOW)).toBe(
    'Network in above 1.00 KiB/s (peak 2.00 KiB/s)',
  );
});

test('the name of a series keeps its spelling, and its values their unit', () => {
  const series = alert({ metric_type: 'series', series: 'http_errors', threshold_value: 50, peak_value: 58.7 });

  expect(sentenceOf({ ...series, unit: 'per_second' }, NOW)).toBe('http_errors above 50/s (peak 59/s)');
  expect(sentenceOf({ ...series, target: 'shop' }, NOW)).toBe('http_errors of shop above 50 (peak 58.7)');
});

test('an absence is as long as it is now, and as it was once it is over', () => {
  expect(sentenceOf(offline(), NOW)).toBe('Offline for 21 h 2 min');
  expect(sentenceOf(offline({ status: 'resolved', resolved_at: '2026-11-21T03:13:05.000Z' }), NOW)).toBe(
    'Was offline for 3 min 5 s',
  );
});

test('what is over is in the past', () => {
  expect(sentenceOf(alert({ target: '/', status: 'resolved' }), NOW)).toBe('Disk / was above 90 % (peak 96.2 %)');
});

test('a title stays true, and names the server where it is asked to', () => {
  expect(titleOf(alert({ target: '/', status: 'resolved' }))).toBe('Disk / above 90 %');
  expect(titleOf(offline(), 'edge-sao-1')).toBe('edge-sao-1: Offline');
  expect(sentenceOf(alert({ metric_type: 'reboot', peak_value: 2 }), NOW, 'db')).toBe('db: Rebooted 2 times');
});

test('a container says what became of it', () => {
  const container = (message: string) =>
    titleOf(
      alert({ metric_type: 'container_state', target: 'db', message: `container db on web is unhealthy ${message}` }),
    );

  expect(container('has stopped (exit code 137)')).toBe('Container db stopped (exit code 137)');
  expect(container('has stopped')).toBe('Container db stopped');
  expect(container('is unhealthy')).toBe('Container db unhealthy');
  expect(container('keeps restarting (4 times in 5 min, exit code 1)')).toBe(
    'Container db keeps restarting (exit code 1)',
  );
  expect(container('keeps restarting (4 times in 5 min)')).toBe('Container db keeps restarting');
});

test('what only the service knows is as it says it, with the names as they are', () => {
  const schedule = alert({ metric_type: 'schedule', message: 'schedule nightly on web-1 failed: exit code 3' });

  expect(sentenceOf(schedule, NOW, 'web-1')).toBe('Schedule nightly on web-1 failed: exit code 3');
  expect(titleOf({ ...schedule, message: 'edge-1 does something new' })).toBe('edge-1 does something new');
});

test('another language has its own sentences', async () => {
  speak('de', 'de-DE');
  await translated();

  expect(sentenceOf(alert({ target: '/var/log' }), NOW)).toBe('Datenträger /var/log über 90 % (Spitzenwert 96,2 %)');
  expect(sentenceOf(offline(), NOW)).toBe('Offline seit 21 h 2 min');
});

test('an alert has the words of the service until sentences are loaded', async () => {
  const one = alert({});

  expect(sentences.of(one)).toBe(one.message);

  await vi.waitFor(() => expect(sentences.of(one)).toBe('Disk above 90 % (peak 96.2 %)'));
});
