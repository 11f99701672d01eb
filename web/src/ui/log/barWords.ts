// What a bar of the histogram of a log stands for.
import * as m from '#messages/log';
import { duration, wholeDuration } from '../../lib/format';

const UNITS = new Map([
  [1_000, m.perSecond],
  [60_000, m.perMinute],
  [3_600_000, m.perHour],
  [86_400_000, m.perDay],
]);

/** `Lines per minute`, `Lines per 5 min`; of `stepMs` milliseconds. */
export function barWords(stepMs: number): string {
  const ofUnit = UNITS.get(stepMs);
  if (ofUnit) return ofUnit();
  return m.perBar({ duration: stepMs < 1_000 ? duration(stepMs) : wholeDuration(stepMs / 1_000) });
}
