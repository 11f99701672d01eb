import { expect, it } from 'vitest';
import type { Line } from '../../../charts/lines';
import { queryOf } from '../../explore/query';
import { exploreAddress, ruleAddress, suggestedOf, targetOf, watchOf, watchOfSeries } from './watch';

const line = (name: string, more: Partial<Line> = {}): Line => ({
  name,
  label: name,
  colour: '',
  column: { avg: [], min: [], max: [] },
  ...more,
});

it('knows what a rule of a chart is about', () => {
  expect(watchOf({ key: 'memory', lines: [line('memory_used')], chosen: null })).toMatchObject({
    metric: 'memory',
    names: ['memory_percent'],
  });
  expect(watchOf({ key: 'network', lines: [line('network_in:eth0')], chosen: 'eth0' })).toMatchObject({
    metric: 'network_in',
    target: 'eth0',
  });
  const disks = [line('disk_percent:/'), line('disk_percent:/ day', { isFaint: true })];
  expect(watchOf({ key: 'disks', lines: disks, chosen: null })?.names).toEqual(['disk_percent:/']);
  expect(watchOf({ key: 'disk-io', lines: [line('disk_read:sda')], chosen: 'sda' })).toBeNull();
  expect(watchOf({ key: 'cpu', lines: [], chosen: null })).toBeNull();
});

it('takes the suggestion to the editor and back', () => {
  const watch = { metric: 'network_in' as const, names: [], target: 'eth0', series: null };

  const address = ruleAddress('/servers/a/alerts', watch, { value: 1_400_000, usual: 1_234_567.5 });

  const query = new URL(address, 'http://x').searchParams;
  expect(query.get('new')).toBe('network_in');
  expect(suggestedOf(query)).toEqual({ value: 1_400_000, usual: 1_234_567.5, target: 'eth0', series: '' });
});

it('begins without a suggestion where there is none', () => {
  const watch = { metric: 'series' as const, names: [], target: null, series: 'fan_speed' };

  const query = new URL(ruleAddress('/a', watch, null), 'http://x').searchParams;

  expect(suggestedOf(query)).toBeNull();
  expect(targetOf(query)).toEqual({ target: '', series: 'fan_speed' });
  expect(suggestedOf(new URLSearchParams('value=x&usual=1'))).toBeNull();
});

it('leads to Explore with the series and the range', () => {
  expect(exploreAddress('a', ['network_in:eth0', 'network_out:eth0'], { range: '1h', from: null })).toBe(
    '/explore?server=a&s=network_in%3Aeth0&s=network_out%3Aeth0&range=1h',
  );
  const address = exploreAddress('a', ['disk_percent:/mnt/a,b'], {});
  expect(queryOf(new URL(address, 'https://box').searchParams).series).toEqual(['disk_percent:/mnt/a,b']);
});

it('knows what a rule of series is about that are shown together', () => {
  expect(watchOfSeries(['cpu_percent'])).toMatchObject({ metric: 'cpu', target: null });
  expect(watchOfSeries(['disk_percent:/', 'disk_percent:/var'])).toMatchObject({ metric: 'disk', target: null });
  expect(watchOfSeries(['network_in:eth0'])).toMatchObject({ metric: 'network_in', target: 'eth0' });
  expect(watchOfSeries(['network_in:eth0', 'network_in:eth1'])).toBeNull();
  expect(watchOfSeries(['cpu_percent', 'memory_percent'])).toBeNull();
  expect(watchOfSeries(['fan_speed:1'])).toBeNull();
  expect(watchOfSeries([])).toBeNull();
});
