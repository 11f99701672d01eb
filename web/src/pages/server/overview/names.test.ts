import { expect, it } from 'vitest';
import { choose, parts } from './names';

it('parts a name from what it is of, whatever that is called', () => {
  expect(parts('network_in:eth0')).toEqual(['network_in', 'eth0']);
  expect(parts('disk_percent:/mnt/a:b')).toEqual(['disk_percent', '/mnt/a:b']);
  expect(parts('load_1')).toEqual(['load_1', '']);
});

it('asks for what is shown, and for cores when they are', () => {
  const names = ['cpu_percent', 'cpu_core:0', 'disk_used:/', 'disk_percent:/', 'container_network_in:web'];

  expect(choose.from(names, false, null)).toEqual(['cpu_percent', 'disk_percent:/']);
  expect(choose.from(names, true, null)).toEqual(['cpu_percent', 'cpu_core:0', 'disk_percent:/']);
});

it('does not ask for more of a kind than can be read', () => {
  const names = Array.from({ length: 200 }, (_, place) => `container_cpu:c${place}`);

  expect(choose.from(names, false, null).length).toBe(24);
});
