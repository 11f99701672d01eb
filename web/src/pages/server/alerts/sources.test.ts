import { expect, it } from 'vitest';
import type { Snapshot } from '../../../api/types';
import { namesOf, scaled, seriesOf, sourceOf, targetsOf } from './sources';

const NAMES = ['cpu_percent', 'disk_percent:/', 'disk_percent:/var', 'disk_used:/', 'network_in:eth0', 'network_in:lo'];

it('reads the series of the target, or of all', () => {
  expect(namesOf(NAMES, 'cpu', '')).toEqual(['cpu_percent']);
  expect(namesOf(NAMES, 'disk', '')).toEqual(['disk_percent:/', 'disk_percent:/var']);
  expect(namesOf(NAMES, 'disk', '/var')).toEqual(['disk_percent:/var']);
  expect(namesOf(NAMES, 'disk', '/usb')).toEqual([]);
  expect(namesOf(NAMES, 'offline', '')).toEqual([]);
});

it('leaves the loopback out unless it is named', () => {
  expect(namesOf(NAMES, 'network_in', '')).toEqual(['network_in:eth0']);
  expect(namesOf(NAMES, 'network_in', 'lo')).toEqual(['network_in:lo']);
});

it('takes all sensors of a label', () => {
  const sensors = ['temperature:core', 'temperature:core#2', 'temperature:core#x', 'temperature:core 2'];

  expect(namesOf(sensors, 'temperature', 'core')).toEqual(['temperature:core', 'temperature:core#2']);
});

it('knows what has numbers over time', () => {
  expect(sourceOf('load')?.unit).toBe('count');
  expect(sourceOf('container_state')).toBeNull();
});

it('offers the open series of the latest sample and their targets, and has no chart of them', () => {
  const extra = { 'fan_speed:cpu': 900, 'fan_speed:a:b': 700, queue_length: 3 };
  const latest = { disk_usage: [], network: [], temperatures: [], extra } as unknown as Snapshot;

  expect(seriesOf(latest)).toEqual(['fan_speed', 'queue_length']);
  expect(targetsOf('series', latest, [], 'fan_speed')).toEqual(['a:b', 'cpu']);
  expect(targetsOf('series', latest, [], 'queue_length')).toEqual([]);
  expect(sourceOf('series')).toBeNull();
});

it('makes a share of bytes', () => {
  expect(scaled({ avg: [50, null], min: [40, null], max: [60, null] }, 2)).toEqual({
    avg: [100, null],
    min: [80, null],
    max: [120, null],
  });
});
