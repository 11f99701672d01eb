// Steps on a page: changes of its address that are entries of the browser's history, such as another range of time. Each entry
// keeps the steps that led to it in its `history.state`, so that they stay true however somebody moves, and after a reload. Pure.

type Values = Record<string, string | null>;

export interface Step {
  /** How many steps led to its entry, with itself. */
  count: number;
  /** Tells the steps of a page apart. */
  what: string;
  /** The query of the address that was left. */
  left: string;
  /** The query that the step led to. What the address says besides was set later. */
  came: string;
  /** What it changed, as it was before. */
  before: Values;
}

/** The steps that led to an entry of the history. */
export function stepsOf(state: unknown): readonly Step[] {
  const steps = (state as { steps?: unknown } | null)?.steps;
  return Array.isArray(steps) ? (steps as Step[]) : [];
}

/** An entry of the history. */
export interface Entry {
  query: URLSearchParams;
  steps: readonly Step[];
}

/**
 * The query of an entry `to` that somebody goes to by the browser's Back or Forward from `from`, where it differs from its own:
 * steps are taken back or made again, and what was set since, such as a filter, stays.
 */
export function carried(from: Entry, to: Entry): URLSearchParams | null {
  const [then, now] = [countOf(from), countOf(to)];
  const isBack = now < then;
  const between = (isBack ? from : to).steps.filter(({ count }) => count > Math.min(then, now));
  const [first] = between;
  if (!first) return null;
  if (!(isBack ? isChangedSince(between, from.query) : !isSame(first.left, from.query))) return null;
  const query = new URLSearchParams(from.query);
  // The earliest step knows what was before all of them.
  for (const { before } of [...between].reverse())
    for (const [name, value] of Object.entries(before)) put(query, name, isBack ? value : to.query.get(name));
  return isSame(to.query.toString(), query) ? null : query;
}

const countOf = ({ steps }: Entry) => steps.at(-1)?.count ?? 0;

/** Whether something was set after one of these steps, besides the next. */
function isChangedSince(steps: readonly Step[], now: URLSearchParams): boolean {
  return steps.some(({ came }, place) => {
    const next = steps[place + 1];
    return !isSame(came, next ? new URLSearchParams(next.left) : now);
  });
}

function isSame(text: string, query: URLSearchParams): boolean {
  return new URLSearchParams(text).toString() === query.toString();
}

export function put(query: URLSearchParams, name: string, value: string | null): void {
  if (value === null || value === '') query.delete(name);
  else query.set(name, value);
}
