// What somebody chose in the palette: an entry, and not the place where it stands, which changes when others arrive. Pure.
import type { Entry } from './entries';

export interface Choice {
  key: string;
  /** Where it stood when it was chosen. */
  place: number;
}

/** What an entry is, whatever stands before it. No two entries of an offer have the same. */
export function keyOf({ group, href, id, text }: Entry): string {
  return `${group} ${href ?? id ?? text}`;
}

/** The choice of what stands at a place, or at the nearest one that there is; null where nothing is offered. */
export function chosenAt(place: number, entries: readonly Entry[]): Choice | null {
  const nearest = Math.max(0, Math.min(entries.length - 1, place));
  const entry = entries[nearest];
  return entry ? { key: keyOf(entry), place: nearest } : null;
}

/**
 * Where a choice stands now: the first where nobody has chosen, and where its entry is gone, what stands in its place or last.
 * -1 where nothing is offered.
 */
export function placeOf(choice: Choice | null, entries: readonly Entry[]): number {
  const found = choice ? entries.findIndex((entry) => keyOf(entry) === choice.key) : -1;
  return found >= 0 ? found : Math.min(choice?.place ?? 0, entries.length - 1);
}
