import { expect, test } from 'vitest';
import { labelOfMetric, scaleOf, typedChoices } from './metrics';

test('shares end at 100 %, and their alarm begins where rules usually do', () => {
  expect(scaleOf('cpu_percent', undefined, 12)).toEqual({ unit: 'percent', top: 100, alarmAt: 0.9 });
  expect(scaleOf('disk_percent:/', undefined, 12).alarmAt).toBe(0.9);
});

test('other scales end a little above what was measured', () => {
  const traffic = scaleOf('network_in', undefined, 3_000_000);
  expect(traffic.top).toBeGreaterThan(3_000_000);
  expect(traffic.top).toBeLessThan(5_000_000);
  expect(traffic.alarmAt).toBe(1);
  expect(scaleOf('load_1', undefined, 2).alarmAt).toBe(1);
  expect(scaleOf('load_1', undefined, 30).alarmAt).toBeLessThan(0.5);
  expect(scaleOf('container_cpu', undefined, 350).top).toBeGreaterThan(350);
});

test('an open series has the unit that the agent says, and its own name', () => {
  expect(scaleOf('fan_speed', 'rpm', 900).unit).toBe('rpm');
  expect(scaleOf('fan_speed', undefined, null).unit).toBe('count');
  expect(labelOfMetric('fan_speed')).toBe('fan_speed');
  expect(labelOfMetric(typedChoices()[0]?.name ?? '')).toBe(typedChoices()[0]?.label);
});
