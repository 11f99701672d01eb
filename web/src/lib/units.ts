// What values are measured in, and how one is written. Apart from the charts, so that sentences do not load those.
import { bytes, number, percent, rate } from './format';

/** The units that only open series have, and how each is written after a number. */
const SUFFIX = {
  seconds: ' s',
  milliseconds: ' ms',
  per_second: '/s',
  ratio: '',
  volts: ' V',
  watts: ' W',
  rpm: ' rpm',
  bool: '',
  days: ' d',
} as const;

export type Unit = 'percent' | 'bytes' | 'bytes_per_second' | 'celsius' | 'count' | keyof typeof SUFFIX;

const UNITS: ReadonlySet<string> = new Set([
  'percent',
  'bytes',
  'bytes_per_second',
  'celsius',
  'count',
  ...Object.keys(SUFFIX),
]);

/** What the chart of a series is measured in; of a counter that is its rate. What is not known is a number. */
export function unitOf(unit: string, kind: string): Unit {
  if (kind === 'counter') {
    if (unit === 'bytes') return 'bytes_per_second';
    return unit === 'seconds' ? 'ratio' : 'per_second';
  }
  return UNITS.has(unit) ? (unit as Unit) : 'count';
}

/** Whether only open series have it. */
export const isSpecial = (unit: Unit) => unit in SUFFIX;

/** What stands behind the number of an open series. */
export function suffix(unit: Unit): string {
  return unit in SUFFIX ? SUFFIX[unit as keyof typeof SUFFIX] : '';
}

/** A value as the legend of a chart shows it. */
export function valueText(value: number | null | undefined, unit: Unit): string {
  if (value === null || value === undefined) return '–';
  if (unit === 'percent') return percent(value, value < 10 ? 1 : 0);
  if (unit === 'bytes') return bytes(value);
  if (unit === 'bytes_per_second') return rate(value);
  if (unit === 'celsius') return `${number(value, 1)} °C`;
  if (unit === 'ratio') return number(value, 3);
  return `${number(value, Math.abs(value) < 10 ? 2 : 0)}${suffix(unit)}`;
}
