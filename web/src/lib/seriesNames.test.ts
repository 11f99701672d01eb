import { createQuerySerializer } from 'openapi-fetch';
import { expect, it } from 'vitest';
import { namesAsked, namesRead, namesWritten } from './seriesNames';

it('are one parameter, or one each where a comma is in a name', () => {
  const asked = (...names: string[]) => createQuerySerializer()({ names: namesAsked(names) });

  expect(asked('cpu_percent', 'network_in:eth0')).toBe('names=cpu_percent%2Cnetwork_in%3Aeth0');
  expect(asked('cpu_percent', 'disk_percent:/a,b')).toBe('names=cpu_percent&names=disk_percent%3A%2Fa%2Cb');
  expect(asked('fan_speed:Rack A ')).toBe('names=fan_speed%3ARack%20A%20');
});

it('are read from an address as they were written', () => {
  const names = ['cpu_percent', 'disk_percent:/a,b', 'disk_percent:/100%25', 'fan_speed: Rack A '];

  expect(namesRead(namesWritten(names))).toEqual(names);
  expect(namesWritten(['disk_percent:*', 'load_1'])).toBe('disk_percent:*,load_1');
  expect(namesRead(' cpu_percent,, disk_percent:/100% ')).toEqual(['cpu_percent', 'disk_percent:/100%']);
});
