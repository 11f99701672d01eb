import { expect, it } from 'vitest';
import type { Range } from '../../charts/ranges';
import { zoomed, zoomsOf } from './zooms';

const ONE = '019aa0b8-7d1c-7e3a-9c61-000000000001 1';
const TWICE = '019aa0b8-7d1c-7e3a-9c61-000000000001 2';
const night: Range = { kind: 'fixed', from: 1_795_296_000, to: 1_795_299_600 };
const read = (text: string | null) => zoomsOf(new URLSearchParams(text === null ? {} : { zoom: text }));

it('are in the address for each view, and come back from it', () => {
  const one = zoomed(new Map(), ONE, night);
  const both = zoomed(read(one), TWICE, { ...night, to: night.to + 60 });

  expect(one).toBe('019aa0b8-7d1c-7e3a-9c61-000000000001.1.1795296000.1795299600');
  expect([...read(both)]).toEqual([
    [ONE, night],
    [TWICE, { ...night, to: night.to + 60 }],
  ]);
  expect(zoomed(read(both), TWICE, null)).toBe(one);
  expect(zoomed(read(one), ONE, null)).toBeNull();
});

it('leave aside what makes no sense', () => {
  for (const text of [null, '', 'x', `${ONE}.5.9`, '019aa0b8-7d1c-7e3a-9c61-000000000001.1.9.5'])
    expect(read(text).size).toBe(0);
});
