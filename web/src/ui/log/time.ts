import { partsOf, writtenParts } from '../../lib/times';

/** A moment of a line on the reader's clock: `11-21`, `21:43:49`, `.117`, or `09:43:49`, `.117`, ` PM`. */
export function clockTime(at: number): { day: string; clock: string; ms: string; half: string } {
  const [, month, day] = partsOf(at).map((part) => String(part).padStart(2, '0'));
  const parts = writtenParts('second', at);
  const half = parts.find((part) => part.type === 'dayPeriod')?.value;
  const ms = String(((at % 1000) + 1000) % 1000).padStart(3, '0');
  const clock = parts.filter((part) => ['hour', 'minute', 'second'].includes(part.type)).map((part) => part.value);
  return { day: `${month}-${day}`, clock: clock.join(':'), ms: `.${ms}`, half: half ? ` ${half}` : '' };
}
