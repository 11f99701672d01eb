import { afterEach, expect, it } from 'vitest';
import type { Snapshot } from '../api/types';
import listed from './metrics.json';
import { speak, translated } from '../text/catalogue';
import { labelOf, measuredIn, unitOfTyped, WATCHED } from './metrics';

afterEach(() => speak('en', 'en-US'));

const SAMPLE = {
  cpu_percent: 12,
  cpu_per_core: [10, 14],
  load_average: [1, 2, 3],
  disk_usage: [{ path: '/', total: 10, used: 5, free: 5, percent: 50 }],
  network: [{ interface: 'eth0', bytes_recv: 1000, bytes_sent: 500 }],
  temperatures: [
    { label: 'core', celsius: 40 },
    { label: 'core', celsius: 50 },
  ],
} as unknown as Snapshot;

it('finds every value under the name that the history has', () => {
  const found = new Map([...measuredIn(SAMPLE)].map(({ name, value, isCounter }) => [name, [value, isCounter]]));

  expect(found.get('cpu_percent')).toEqual([12, false]);
  expect(found.get('cpu_core:1')).toEqual([14, false]);
  expect(found.get('load_15')).toEqual([3, false]);
  expect(found.get('disk_used:/')).toEqual([5, false]);
  expect(found.get('network_in:eth0')).toEqual([1000, true]);
  expect(found.get('temperature:core#2')).toEqual([50, false]);
  expect(found.has('memory_used')).toBe(false);
});

it('knows what typed series are, and nothing of open ones', () => {
  expect([labelOf('load_5'), unitOfTyped('network_in')]).toEqual(['5 min', 'bytes_per_second']);
  expect([labelOf('fan_speed'), unitOfTyped('fan_speed')]).toEqual([null, null]);
});

it('offers what thresholds may be about in the usual order', () => {
  expect(WATCHED.map(({ word, base, unit }) => `${word} ${base} ${unit}`)).toEqual([
    'cpu cpu_percent percent',
    'memory memory_percent percent',
    'swap swap_used percent',
    'disk disk_percent percent',
    'load load_1 count',
    'network_in network_in bytes_per_second',
    'network_out network_out bytes_per_second',
    'temperature temperature celsius',
  ]);
});

it('every metric of the table has its names in the catalogue', async () => {
  speak('de', 'de');
  await translated();
  const english = new Set(['CPU', 'Swap', 'swap', '1 min', '5 min', '15 min']);

  const labels = listed.filter(({ series, label }) => series && label && !english.has(label));
  expect(labels.filter(({ series, label }) => labelOf(series ?? '') === label)).toEqual([]);
  const words = listed.flatMap(({ threshold }) => threshold ?? []).filter(({ label }) => !english.has(label));
  const shown = new Map(WATCHED.map(({ word, label, counts }) => [word, [label(), counts()]]));
  expect(words.filter(({ word, label }) => shown.get(word)?.[0] === label)).toEqual([]);
  expect(words.filter(({ word, counts }) => shown.get(word)?.[1] === counts)).toEqual([]);
});
