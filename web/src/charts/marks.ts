import type { Tone } from './colours';

/** Something that happened at a time: a thin line on all charts. */
export interface Mark {
  id: string;
  /** Seconds. */
  at: number;
  kind: 'alert' | 'restart' | 'container' | 'agent' | 'command' | 'action';
  tone: Tone;
  title: string;
  detail?: string;
  href?: string;
}

/** The marks within `within` seconds of a time, the nearest first, at most `most`. */
export function marksNear(marks: readonly Mark[], at: number, within: number, most = 3): Mark[] {
  return marks
    .filter((mark) => Math.abs(mark.at - at) <= within)
    .sort((one, other) => Math.abs(one.at - at) - Math.abs(other.at - at))
    .slice(0, most);
}

const WEIGHT: Record<Tone, number> = { bad: 4, warn: 3, accent: 2, ok: 1, idle: 0 };

/** The marks that are drawn: of those that lie closer than `apart` seconds the worst. */
export function thinned(marks: readonly Mark[], apart: number): Mark[] {
  const drawn: Mark[] = [];
  for (const mark of [...marks].sort((one, other) => one.at - other.at)) {
    const last = drawn.at(-1);
    if (!last || mark.at - last.at >= apart) drawn.push(mark);
    else if (WEIGHT[mark.tone] > WEIGHT[last.tone]) drawn[drawn.length - 1] = { ...mark, at: last.at };
  }
  return drawn;
}
