import { expect, it } from 'vitest';
import { axisRange, axisText, snapped, steps, unitOf, valueText } from './units';

it('writes values with their unit', () => {
  expect(valueText(5.25, 'percent')).toBe('5.3 %');
  expect(valueText(55.25, 'percent')).toBe('55 %');
  expect(valueText(1536, 'bytes')).toBe('1.50 KiB');
  expect(valueText(1536, 'bytes_per_second')).toBe('1.50 KiB/s');
  expect(valueText(40.25, 'celsius')).toBe('40.3 °C');
  expect(valueText(120.4, 'count')).toBe('120');
  expect(valueText(null, 'bytes')).toBe('–');
});

it('knows the units of open series, and a counter by its rate', () => {
  expect(valueText(1180, unitOf('rpm', 'gauge'))).toBe('1,180 rpm');
  expect(valueText(2.5, unitOf('milliseconds', 'gauge'))).toBe('2.5 ms');
  expect(valueText(1536, unitOf('bytes', 'counter'))).toBe('1.50 KiB/s');
  expect(valueText(12, unitOf('count', 'counter'))).toBe('12/s');
  expect(valueText(0.1234, unitOf('ratio', 'gauge'))).toBe('0.123');
  expect(unitOf('furlongs', 'gauge')).toBe('count');
  expect(axisText(12_000, 'rpm')).toBe('12k rpm');
});

it('writes axes short', () => {
  expect(axisText(50, 'percent')).toBe('50 %');
  expect(axisText(0, 'bytes')).toBe('0');
  expect(axisText(512 * 1024, 'bytes')).toBe('512 KiB');
  expect(axisText(1.5 * 1024 ** 3, 'bytes_per_second')).toBe('1.5 GiB/s');
  expect(axisText(0.25, 'count')).toBe('0.25');
  expect(axisText(20_000, 'count')).toBe('20k');
});

it('divides sizes by powers of two', () => {
  expect(steps('bytes').every((step) => Number.isInteger(Math.log2(step)))).toBe(true);
});

it('keeps a fixed axis where it is', () => {
  expect(axisRange('percent', 3, 100, [])).toEqual([0, 100]);
  expect(axisRange('percent', null, 100, [])).toEqual([0, 100]);
});

it('reaches to what is shown, and to the lines', () => {
  expect(axisRange('count', 3.2, null, [])).toEqual([0, 4]);
  expect(axisRange('count', 3.2, null, [8])).toEqual([0, 8]);
  expect(axisRange('bytes_per_second', 900_000, null, [])[1]).toBe(1024 ** 2);
});

it('gives way when something exceeds what is fixed', () => {
  expect(axisRange('percent', 140, 100, [])).toEqual([0, 200]);
});

it('does not make noise a mountain', () => {
  expect(axisRange('bytes_per_second', 3, null, [])).toEqual([0, 1024]);
});

it('makes what was pointed at as round as a pixel allows', () => {
  expect(snapped(87.31, 'percent', 0.4)).toBe(87);
  expect(snapped(3.14159, 'count', 0.01)).toBe(3.1);
  expect(snapped(431.7, 'count', 4)).toBe(430);
  expect(snapped(11.437 * 1024 ** 2, 'bytes_per_second', 80 * 1024)).toBeCloseTo(11.4 * 1024 ** 2, 3);
  expect(snapped(0, 'bytes', 10)).toBe(0);
});
