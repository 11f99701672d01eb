// What the pointer shows of a bar. One for all bars.
import * as m from '#messages/beats';
import { written } from '../../lib/times';
import { partAt, type Bar, type Part } from './beatPaths';

class Tip {
  /** Where it stands, seen from the window, and what it says; null while nothing is pointed at. */
  shown = $state.raw<{ x: number; y: number; time: string; lines: string[] } | null>(null);

  point(event: PointerEvent, bar: Bar): void {
    const { left, width, top } = (event.currentTarget as Element).getBoundingClientRect();
    const part = width > 0 ? partAt(bar, (event.clientX - left) / width) : null;
    if (!part) return this.hide();
    const time = m.range({ start: written('minute', part.start), end: written('minute', part.end) });
    this.shown = { x: event.clientX, y: top, time, lines: linesOf(part) };
  }

  hide(): void {
    this.shown = null;
  }
}

const words = { online: m.online, partly: m.partly, offline: m.offline, unknown: m.unknown };

function linesOf({ beat, outages, start, end }: Part): string[] {
  const whole = outages.length === 1 && outages[0]?.start === start && outages[0].end === end;
  if (outages.length === 0 || whole) return [words[beat]()];
  return outages.map((outage) => {
    const times = { start: written('second', outage.start), end: written('second', outage.end) };
    return outage.isOngoing ? m.offlineSince(times) : m.offlineFrom(times);
  });
}

export const tip = new Tip();
