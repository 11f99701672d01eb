import { expect, test } from 'vitest';
import { containersAt, namesOf } from './containers';

const column = (...avg: (number | null)[]) => ({ avg, min: avg, max: avg });
const table = {
  resolution_seconds: 60,
  timestamps: [100, 160, 220],
  series: {
    'container_cpu:web': column(1, 2, 3),
    'container_memory:web': column(10, 20, 30),
    'container_cpu:backup': column(null, 90, null),
    cpu_percent: column(5, 5, 5),
  },
};

test('containers are those of the last values before a time, the busiest first', () => {
  expect(containersAt(table, 170)).toEqual([
    { name: 'backup', cpu: 90, memory: null },
    { name: 'web', cpu: 2, memory: 20 },
  ]);
  expect(containersAt(table, 500).map(({ name }) => name)).toEqual(['web']);
  expect(containersAt(table, 50).map(({ cpu }) => cpu)).toEqual([1]);
  expect(containersAt({ resolution_seconds: 1, timestamps: [], series: {} }, 50)).toEqual([]);
});

test('both series of a container are read, and of no more containers than asked', () => {
  const names = ['container_cpu:a', 'container_memory:a', 'container_cpu:b,c', 'container_cpu:d', 'cpu_percent'];

  expect(namesOf(names, 5)).toEqual(['container_cpu:a', 'container_memory:a', 'container_cpu:d', 'container_memory:d']);
  expect(namesOf(names, 1)).toHaveLength(2);
});
