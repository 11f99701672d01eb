// What somebody wants done who types a sentence: "silence db-1 for 2 h", "run on tag web".

const MINUTES: Record<string, number> = { m: 1, min: 1, h: 60, d: 1440, w: 10_080 };
/** The longest silence that the service takes: a year. */
const MOST_MINUTES = 525_600;

export interface Asked {
  kind: 'silence' | 'run';
  /** What it is to be done to, as it was typed. */
  rest: string;
  /** Whether only tags are meant. */
  isTag: boolean;
  minutes: number | null;
}

/** Words as a language has them, each in lower case. */
export interface Verbs {
  silence: string[];
  run: string[];
  /** `for`, `on`: they say nothing more. */
  fillers: string[];
  tag: string[];
}

/** At least so much of a verb must be typed. */
const ENOUGH = 2;

/** What was asked; null where it begins with none of the verbs. */
export function askedFor(typed: string, verbs: Verbs): Asked | null {
  const [first = '', ...others] = typed.trim().toLowerCase().split(/\s+/);
  if (first.length < ENOUGH) return null;
  const isVerb = (verb: string) => verb.startsWith(first);
  const kind = verbs.silence.some(isVerb) ? 'silence' : verbs.run.some(isVerb) ? 'run' : null;
  if (!kind) return null;
  const asked: Asked = { kind, rest: '', isTag: false, minutes: null };
  const rest: string[] = [];
  for (const [index, word] of others.entries()) {
    const [, count, unit = ''] = /^(\d{1,6})(min|m|h|d|w)?$/.exec(word) ?? [];
    const next = others[index + 1] ?? '';
    const previous = others[index - 1] ?? '';
    if (kind === 'silence' && count && unit) asked.minutes = minutesOf(count, unit);
    else if (kind === 'silence' && count && next in MINUTES) asked.minutes = minutesOf(count, next);
    else if (kind === 'silence' && word in MINUTES && /^\d{1,6}$/.test(previous)) continue;
    else if (verbs.fillers.includes(word)) continue;
    else if (verbs.tag.includes(word)) asked.isTag = true;
    else rest.push(word);
  }
  return { ...asked, rest: rest.join(' ') };
}

function minutesOf(count: string, unit: string): number {
  return Math.min(MOST_MINUTES, Math.max(1, Number(count) * (MINUTES[unit] ?? 1)));
}
