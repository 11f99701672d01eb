// How the values of charts are written, and how their axes are divided.
import { number } from '../lib/format';
import { isSpecial, suffix, unitOf, valueText, type Unit } from '../lib/units';

export { unitOf, valueText, type Unit };

const BINARY = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi'];

/** A value as an axis shows it: as short as it is clear. */
export function axisText(value: number, unit: Unit): string {
  if (unit === 'percent') return `${tidy(value)} %`;
  if (unit === 'celsius') return `${tidy(value)}°`;
  if (unit === 'count' || isSpecial(unit))
    return `${value >= 10_000 ? `${tidy(value / 1000)}k` : tidy(value)}${suffix(unit)}`;
  let size = value;
  let step = 0;
  while (size >= 1024 && step < BINARY.length - 1) {
    size /= 1024;
    step += 1;
  }
  const text = value === 0 ? '0' : `${tidy(size)} ${BINARY[step]}B`;
  return unit === 'bytes_per_second' && value !== 0 ? `${text}/s` : text;
}

function tidy(value: number): string {
  return number(value, value < 1 ? 2 : 1);
}

/** Distances of the lines of an axis, the closest first. Sizes are divided by powers of two, so that they read well. */
export function steps(unit: Unit): number[] {
  if (unit === 'bytes' || unit === 'bytes_per_second') return Array.from({ length: 56 }, (_, power) => 2 ** power);
  if (unit === 'percent') return [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000, 2000, 5000, 10_000];
  const decades = Array.from({ length: 12 }, (_, power) => 10 ** (power - 2));
  return decades.flatMap((decade) => [decade, 2 * decade, 5 * decade]);
}

/** The least that an axis reaches to, so that noise about nothing does not look like a mountain. */
const LEAST_TOP: Record<Unit, number> = {
  percent: 1,
  bytes: 1024 ** 2,
  bytes_per_second: 1024,
  celsius: 60,
  count: 1,
  seconds: 0.1,
  milliseconds: 1,
  per_second: 1,
  ratio: 1,
  volts: 1,
  watts: 1,
  rpm: 100,
  bool: 1,
  days: 1,
};

/** From where to where an axis goes, that shows values up to `most`. `fixed` is a top that does not depend on them. */
export function axisRange(unit: Unit, most: number | null, fixed: number | null, lines: number[]): [number, number] {
  const top = Math.max(fixed ?? 0, ...lines, LEAST_TOP[unit]);
  if (fixed !== null && (most === null || most <= top)) return [0, top];
  const reach = Math.max(top, (most ?? 0) * 1.08);
  return [0, roundUp(reach, unit)];
}

function roundUp(value: number, unit: Unit): number {
  if (unit === 'bytes' || unit === 'bytes_per_second') {
    const step = 2 ** Math.max(0, Math.floor(Math.log2(value)) - 2);
    return Math.ceil(value / step) * step;
  }
  const decade = 10 ** Math.floor(Math.log10(value));
  const share = value / decade;
  const round = [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((one) => one >= share - 1e-9) ?? 10;
  return round * decade;
}

/** The least by which a value is changed by hand. */
const LEAST_STEP: Record<Unit, number> = {
  percent: 1,
  bytes: 1,
  bytes_per_second: 1,
  celsius: 1,
  count: 0.1,
  seconds: 0.001,
  milliseconds: 0.1,
  per_second: 0.1,
  ratio: 0.001,
  volts: 0.01,
  watts: 0.1,
  rpm: 1,
  bool: 1,
  days: 0.1,
};

/** A value that was pointed at, as round as a pixel allows: `perPixel` is how much one stands for. */
export function snapped(value: number, unit: Unit, perPixel: number): number {
  let size = 1;
  if (unit === 'bytes' || unit === 'bytes_per_second') while (size * 1024 <= Math.abs(value)) size *= 1024;
  const pixel = Math.max(perPixel / size, LEAST_STEP[unit] / size);
  const decade = 10 ** Math.floor(Math.log10(pixel) + 1e-9);
  const step = [1, 2, 5, 10].map((part) => part * decade).find((one) => one >= pixel * (1 - 1e-9)) ?? pixel;
  return Number((Math.round(value / size / step) * step).toPrecision(12)) * size;
}
