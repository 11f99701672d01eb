import type { IconName } from '../ui/icons';
import type { Tone } from './colours';

/** Something that happened at a time: a thin line on all charts. */
export interface Mark {
  id: string;
  /** Seconds. */
  at: number;
  kind: 'alert' | 'restart' | 'container' | 'agent' | 'command' | 'action' | 'deploy' | 'note';
  tone: Tone;
  title: string;
  detail?: string;
  href?: string;
  /** Who wrote it. */
  by?: string;
  /** The stored event, of what people wrote: it can be deleted. */
  eventId?: string;
}

export const MARK_ICONS: Record<Mark['kind'], IconName> = {
  alert: 'bell',
  restart: 'refresh',
  container: 'box',
  agent: 'activity',
  command: 'terminal',
  action: 'user',
  deploy: 'send',
  note: 'tag',
};

/** The marks within `within` seconds of a time, the nearest first, at most `most`. */
export function marksNear(marks: readonly Mark[], at: number, within: number, most = 3): Mark[] {
  return marks
    .filter((mark) => Math.abs(mark.at - at) <= within)
    .sort((one, other) => Math.abs(one.at - at) - Math.abs(other.at - at))
    .slice(0, most);
}

/** Marks that stand so close that they are one sign, the worst of which it shows. */
export interface Cluster {
  /** Where it stands. */
  at: number;
  shown: Mark;
  /** In the order of their times. */
  marks: Mark[];
}

/** The marks of a span as signs that stand at least `apart` seconds from one another. */
export function clusters(marks: readonly Mark[], from: number, to: number, apart: number): Cluster[] {
  const found: Cluster[] = [];
  const within = marks.filter((mark) => mark.at >= from && mark.at <= to);
  for (const mark of within.sort((one, other) => one.at - other.at)) {
    const last = found.at(-1);
    if (!last || mark.at - last.at >= apart) found.push({ at: mark.at, shown: mark, marks: [mark] });
    else {
      last.marks.push(mark);
      if (WEIGHT[mark.tone] > WEIGHT[last.shown.tone]) last.shown = mark;
    }
  }
  return found;
}

/**
 * The mark by which a sign is known: one that is pointed at, wherever it stands in it, so that the button under the keyboard's focus
 * stays when others join it.
 */
export function keyOf({ marks }: Cluster, pointedAt: readonly (string | null)[]): string {
  const held = pointedAt.find((id) => marks.some((mark) => mark.id === id));
  return held ?? marks[0]?.id ?? '';
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
