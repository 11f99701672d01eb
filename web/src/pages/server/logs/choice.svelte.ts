// What is shown of a log: the text that is searched for, levels, and a time. An address says it, so that it can be shared.
import { untrack } from 'svelte';
import { LEVELS, type Level } from '../../../ui/log/levels';
import type { Span } from '../../../ui/log/log.svelte';
import { router } from '../../../router/router.svelte';

type Changes = Record<string, string | null>;

/** A text that is typed is not written into the address letter by letter: browsers allow so many changes only. */
const SETTLED_MS = 350;

export class LogChoice {
  text = $state('');
  isRegex = $state(false);
  isOnly = $state(false);
  levels = $state.raw<ReadonlySet<Level>>(new Set());
  span = $state.raw<Span | null>(null);

  constructor(query = new URLSearchParams()) {
    this.adopt(query);
  }

  /** Takes what an address says. What makes no sense is left aside. */
  adopt(query: URLSearchParams): void {
    const levels = (query.get('level') ?? '').split(',');
    const [from, to] = [Date.parse(query.get('from') ?? ''), Date.parse(query.get('to') ?? '')];
    this.text = query.get('q') ?? '';
    this.isRegex = query.get('regex') === '1';
    this.isOnly = query.get('only') === '1';
    this.levels = new Set(LEVELS.filter((level) => levels.includes(level)));
    this.span = to > from ? { from, to } : null;
  }

  /** The time, for a search on the server. */
  range(): { since: string | null; until: string | null } {
    const [since, until] = [this.span?.from, this.span?.to].map((at) =>
      at === undefined ? null : new Date(at).toISOString(),
    );
    return { since: since ?? null, until: until ?? null };
  }

  /** As changes of the address. */
  changes(): Changes {
    return {
      q: this.text || null,
      regex: this.isRegex ? '1' : null,
      only: this.isOnly ? '1' : null,
      level: LEVELS.filter((level) => this.levels.has(level)).join(',') || null,
      from: this.span && new Date(this.span.from).toISOString(),
      to: this.span && new Date(this.span.to).toISOString(),
    };
  }
}

/** Keeps what is chosen and the address of the page the same. Call it while a component is made. */
export function keepInAddress(choice: LogChoice): void {
  const differs = (query: URLSearchParams) =>
    Object.entries(choice.changes()).some(([name, value]) => (query.get(name) || null) !== value);

  $effect(() => {
    const changes = choice.changes();
    const timer = setTimeout(() => differs(router.query) && router.set(changes), SETTLED_MS);
    return () => clearTimeout(timer);
  });

  // Another address of the same page: a link, or a step back. Other parts of it change without a word about this one.
  let known = router.query;
  $effect(() => {
    const { query } = router;
    const before = known;
    known = query;
    const isOther = Object.keys(untrack(() => choice.changes())).some((name) => query.get(name) !== before.get(name));
    untrack(() => isOther && differs(query) && choice.adopt(query));
  });
}
