// How numbers, sizes and times are written. One place, so that the same thing looks the same everywhere.

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** Three significant digits with a binary unit: `1.46 GiB`. */
export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  let size = Math.abs(value);
  let unit = 0;
  // 1023.5 would be written as 1024 of the smaller unit.
  while (size >= 1023.5 && unit < UNITS.length - 1) {
    size /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return `${value < 0 ? '−' : ''}${size.toFixed(digits)} ${UNITS[unit]}`;
}

export function rate(value: number | null | undefined): string {
  return value === null || value === undefined ? '–' : `${bytes(value)}/s`;
}

export function percent(value: number | null | undefined, digits = 0): string {
  return value === null || value === undefined || !Number.isFinite(value) ? '–' : `${value.toFixed(digits)} %`;
}

/** As it is written without digits behind the point, so that less is no change. */
export function whole(value: number | null | undefined): number | null {
  return value === null || value === undefined || !Number.isFinite(value) ? null : Math.round(value);
}

export function number(value: number | null | undefined, digits = 2): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  return value.toLocaleString('en-US', { maximumFractionDigits: digits });
}

/** The two largest parts of a time: `3 d 4 h`, `12 min 5 s`, `850 ms`. */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return '–';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  const seconds = Math.floor(ms / 1000);
  const parts: [number, string][] = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  return parts
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(' ');
}

/** How long ago, as a person says it: `just now`, `12 s ago`, `3 min ago`, `2 d ago`. */
export function ago(then: number | string | null | undefined, now: number): string {
  if (then === null || then === undefined) return 'never';
  const seconds = Math.floor((now - time(then)) / 1000);
  if (seconds < 2) return 'just now';
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}

export function time(moment: number | string): number {
  return typeof moment === 'number' ? moment : Date.parse(moment);
}

const TODAY = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const DAY = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

/** A time as short as it is clear: without the day when it is today's. */
export function moment(then: number | string, now = Date.now()): string {
  const date = new Date(time(then));
  return date.toDateString() === new Date(now).toDateString() ? TODAY.format(date) : DAY.format(date);
}

/** A time in full, for titles. */
export function fullTime(then: number | string): string {
  return FULL.format(new Date(time(then)));
}

/** Made once: to make one takes longer than to write a hundred numbers. */
const COUNT = new Intl.NumberFormat('en-US');

/** `1 server`, `3 servers`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${COUNT.format(count)} ${count === 1 ? one : many}`;
}
