// How numbers, sizes and durations are written. One place, so that the same thing looks the same everywhere.
import * as m from '#messages/units';
import { locale } from '../text/catalogue';

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
const NONE = '–';

/** Made once: to make one takes longer than to write a hundred numbers. */
const formats = new Map<string, Intl.NumberFormat>();

/** A number with so many digits behind the point. */
function digits(value: number, least: number, most: number): string {
  const name = `${locale()} ${least} ${most}`;
  let known = formats.get(name);
  if (!known) {
    known = new Intl.NumberFormat(locale(), { minimumFractionDigits: least, maximumFractionDigits: most });
    formats.set(name, known);
  }
  return known.format(value);
}

function isKnown(value: number | null | undefined): value is number {
  return value !== null && value !== undefined && Number.isFinite(value);
}

/** Three significant digits with a binary unit: `1.46 GiB`. */
export function bytes(value: number | null | undefined): string {
  if (!isKnown(value)) return NONE;
  let size = Math.abs(value);
  let unit = 0;
  // 1023.5 would be written as 1024 of the smaller unit.
  while (size >= 1023.5 && unit < UNITS.length - 1) {
    size /= 1024;
    unit += 1;
  }
  const places = unit === 0 || size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return `${value < 0 ? '−' : ''}${digits(size, places, places)} ${UNITS[unit]}`;
}

export function rate(value: number | null | undefined): string {
  return value === null || value === undefined ? NONE : `${bytes(value)}/s`;
}

export function percent(value: number | null | undefined, places = 0): string {
  return isKnown(value) ? `${digits(value, places, places)} %` : NONE;
}

/** With so many digits behind the point at most, and none that is 0. */
export function shortPercent(value: number, most: number): string {
  return `${digits(value, 0, most)} %`;
}

/** As it is written without digits behind the point, so that less is no change. */
export function whole(value: number | null | undefined): number | null {
  return isKnown(value) ? Math.round(value) : null;
}

export function number(value: number | null | undefined, most = 2): string {
  return isKnown(value) ? digits(value, 0, most) : NONE;
}

/** With so many digits behind the point, as many as there are. */
export function fixed(value: number, places: number): string {
  return digits(value, places, places);
}

/** The two largest parts of a time: `3 d 4 h`, `12 min 5 s`, `850 ms`. */
export function duration(ms: number | null | undefined): string {
  if (!isKnown(ms)) return NONE;
  if (ms < 1000) return m.milliseconds({ count: String(Math.round(ms)) });
  if (ms < 10_000) return m.seconds({ count: digits(Math.floor(ms / 100) / 10, 1, 1) });
  const seconds = Math.floor(ms / 1000);
  const parts: [number, (values: { count: string }) => string][] = [
    [Math.floor(seconds / 86_400), m.days],
    [Math.floor(seconds / 3600) % 24, m.hours],
    [Math.floor(seconds / 60) % 60, m.minutes],
    [seconds % 60, m.seconds],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  return parts
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, write]) => write({ count: number(count, 0) }))
    .join(' ');
}

const DAY = 86_400;

/** A duration in its largest unit that has no rest: `90 s`, `15 min`, `24 h`, `7 d`, `1 y`. */
export function wholeDuration(seconds: number): string {
  const units: [number, (values: { count: string }) => string][] = [
    [365 * 86_400, m.years],
    [DAY, m.days],
    [3600, m.hours],
    [60, m.minutes],
    [1, m.seconds],
  ];
  const [size, write] = units.find(([size]) => seconds % size === 0 && (size !== DAY || seconds > DAY)) ?? [
    1,
    m.seconds,
  ];
  return write({ count: number(seconds / size) });
}

/** `a, b and c`. */
export function list(parts: string[], type: 'conjunction' | 'disjunction' = 'conjunction'): string {
  return new Intl.ListFormat(locale(), { type }).format(parts);
}

/** An id of a container as people write it; a name as it is. */
export function shortId(container: string): string {
  return /^[0-9a-f]{64}$/.test(container) ? container.slice(0, 12) : container;
}
