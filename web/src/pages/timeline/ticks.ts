import { TIME_STEPS, timeLabels } from '../../charts/times';
import type { Span } from '../../charts/ranges';
import { partsOf } from '../../lib/times';

export interface Tick {
  at: number;
  label: string;
}

/** The least distance of two labels, in pixels. */
const APART = 84;

/** The lines of a time axis, at round times of the reader's clock. */
export function ticksOf(span: Span, width: number): Tick[] {
  const most = Math.max(1, width / APART);
  const length = span.to - span.from;
  const step = TIME_STEPS.find((one) => length / one <= most) ?? length;
  // By how much the reader's clock is ahead of UTC.
  const ahead = aheadOf(span.from);
  const times: number[] = [];
  for (let at = Math.ceil((span.from + ahead) / step) * step - ahead; at < span.to; at += step) times.push(at);
  const labels = timeLabels(times, step);
  return times.map((at, place) => ({ at, label: labels[place] ?? '' }));
}

function aheadOf(seconds: number): number {
  const [year, month, day, hour, minute, second] = partsOf(seconds * 1000);
  return Math.round(Date.UTC(year, month - 1, day, hour, minute, second) / 1000 - Math.floor(seconds));
}
