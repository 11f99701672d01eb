import { describe, expect, it } from 'vitest';
import { condition, measured, readable } from './words';

describe('a threshold in words', () => {
  it('says what is compared, and for how long it must hold', () => {
    const threshold = { metric_type: 'cpu', comparison: 'gt', threshold_value: 90, duration_seconds: 300 } as const;

    expect(condition(threshold)).toBe('CPU > 90 % for 5 min');
  });

  it('names its target', () => {
    const threshold = { metric_type: 'disk', comparison: 'gte', threshold_value: 92.5, target: '/var' } as const;

    expect(condition(threshold)).toBe('Disk /var ≥ 92.5 %');
  });

  it('of a hundredth of a percent is not one of nothing', () => {
    expect(condition({ metric_type: 'memory', comparison: 'gt', threshold_value: 0.01 })).toBe('Memory > 0.01 %');
  });

  it('says the absence of an agent as a time', () => {
    expect(condition({ metric_type: 'offline', comparison: 'gt', threshold_value: 120 })).toBe(
      'Agent offline for 2 min',
    );
  });

  it('lists the states of containers', () => {
    const threshold = { metric_type: 'container_state', comparison: 'gte', threshold_value: 3 } as const;

    expect(condition({ ...threshold, target: 'web-*', states: ['stopped', 'unhealthy'] })).toBe(
      'Containers web-* stopped or unhealthy',
    );
    expect(condition(threshold)).toBe('Any container stopped, unhealthy, or in a restart loop');
  });
});

it('what has no number has no measure', () => {
  expect(measured('container_state', 1)).toBe('');
  expect(measured('network_in', 2048)).toBe('2.00 KiB/s');
});

it('a number that is hard to read is said once more', () => {
  expect(readable('offline', 120)).toBe('2 min');
  expect(readable('cpu', 90)).toBe('');
  expect(readable('offline', null)).toBe('');
});
