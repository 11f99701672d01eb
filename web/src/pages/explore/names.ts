// The series that there are to choose from: one entry a name, with its targets. Pure.
import type { SeriesName } from '../../api/types';
import { unitOfTyped } from '../../charts/metrics';
import { unitOf, type Unit } from '../../charts/units';
import { parts } from './lines';

export interface Choice {
  base: string;
  unit: Unit;
  help: string;
  /** Empty where the machine has it once. */
  targets: string[];
  /** Whether it is there without a target, too. */
  isPlain: boolean;
}

/** Series by the part of their names before the colon. */
export function choicesOf(names: readonly SeriesName[]): Choice[] {
  const all = new Map<string, Choice>();
  for (const { name, unit, kind, help } of names) {
    const [base, of] = parts(name);
    let choice = all.get(base);
    if (!choice) {
      choice = { base, unit: unitOfTyped(base) ?? unitOf(unit, kind), help: help ?? '', targets: [], isPlain: false };
      all.set(base, choice);
    }
    if (!of) choice.isPlain = true;
    else choice.targets.push(of);
  }
  const byNumber = (one: string, other: string) => one.localeCompare(other, undefined, { numeric: true });
  for (const choice of all.values()) choice.targets.sort(byNumber);
  return [...all.values()].sort((one, other) => byNumber(one.base, other.base));
}

/** One line of the list. */
export interface Entry {
  name: string;
  label: string;
  help: string;
  /** Under the name that it is a target of. */
  isTarget: boolean;
}

/** What the list shows: those that have every word, and the targets of those that are open or match themselves. */
export function entriesOf(choices: readonly Choice[], search: string, open: ReadonlySet<string>): Entry[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (text: string) => words.every((word) => text.toLowerCase().includes(word));
  return choices.flatMap((choice) => {
    const { base, help } = choice;
    const isFound = has(`${base} ${help}`);
    const targets = choice.targets.filter((of) => (words.length > 0 ? has(`${base} ${of}`) : open.has(base)));
    if (!isFound && targets.length === 0) return [];
    const entries: Entry[] = [];
    if (choice.isPlain) entries.push({ name: base, label: base, help, isTarget: false });
    if (!choice.isPlain || choice.targets.length > 0)
      entries.push({ name: `${base}:*`, label: base, help, isTarget: false });
    const shown =
      isFound && words.length > 0 && !open.has(base) && targets.length === choice.targets.length ? [] : targets;
    return [...entries, ...shown.map((of) => ({ name: `${base}:${of}`, label: of, help: '', isTarget: true }))];
  });
}
