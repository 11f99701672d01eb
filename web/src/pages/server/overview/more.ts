// Which series without a chart of their own somebody wants to see: open ones, and typed ones that this page does not draw. Pure.
import type { SeriesName } from '../../../api/types';
import { seriesColour } from '../../../charts/colours';
import type { Line } from '../../../charts/lines';
import { labelOf, unitOfTyped } from '../../../charts/metrics';
import { newest, type Table } from '../../../charts/series';
import { unitOf, type Unit } from '../../../charts/units';
import { hasPlace, parts } from './names';

/** The most lines of one chart: more look alike. */
const MOST_LINES = 6;
/** The most targets of a series that are read. */
const MOST_READ = 24;
/** The most charts. */
export const MOST_CHOSEN = 12;

/** All series of one name. */
export interface Group {
  base: string;
  unit: Unit;
  help: string;
  names: string[];
}

/** What the address says. */
export function chosenOf(query: URLSearchParams): string[] {
  const all = (query.get('more') ?? '').split(',').filter(Boolean);
  return [...new Set(all)].slice(0, MOST_CHOSEN);
}

/** What the address is to say. */
export function queryOfChosen(chosen: readonly string[]): { more: string | null } {
  return { more: chosen.length > 0 ? chosen.join(',') : null };
}

/** Chosen where it was not, and the other way round. */
export function toggledIn(chosen: readonly string[], base: string): string[] {
  return chosen.includes(base) ? chosen.filter((one) => one !== base) : [...chosen, base];
}

export function isChosen(name: string, chosen: readonly string[]): boolean {
  const [base] = parts(name);
  return chosen.includes(base) && !hasPlace(base);
}

/** Which of the series that there are the chosen charts need. */
export function namesOfChosen(names: readonly string[], chosen: readonly string[]): string[] {
  return chosen.flatMap((base) => {
    const its = names.filter((name) => parts(name)[0] === base && isChosen(name, chosen));
    return its.slice(0, MOST_READ);
  });
}

/** Those series by name, in order. Of two units the newest is the one that the service lists. */
export function groupsOf(names: readonly SeriesName[]): Group[] {
  const groups = new Map<string, Group>();
  for (const { name, unit, kind, help } of names) {
    const [base] = parts(name);
    if (hasPlace(base)) continue;
    const known = groups.get(base);
    if (known) known.names.push(name);
    else groups.set(base, { base, unit: unitOfTyped(base) ?? unitOf(unit, kind), help: help ?? '', names: [name] });
  }
  return [...groups.values()].sort((one, other) => one.base.localeCompare(other.base));
}

/** Those whose name, help or target has every word. */
export function found(groups: readonly Group[], search: string): Group[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return groups.filter((group) => {
    const text = `${group.help} ${group.names.join(' ')}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** A line for each target, the greatest first, up to the most that one chart takes. */
export function linesOf(table: Table, group: Group): { lines: Line[]; leftOut: number } {
  const there = group.names.filter((name) => table.columns.has(name));
  const weigh = (name: string) => {
    const column = table.columns.get(name);
    return (column && newest(column)) ?? -Infinity;
  };
  const shown = [...there].sort((a, b) => weigh(b) - weigh(a)).slice(0, MOST_LINES);
  const kept = there.filter((name) => shown.includes(name));
  const isAlone = kept.length === 1;
  const lines = kept.flatMap((name, place): Line[] => {
    const column = table.columns.get(name);
    const label = parts(name)[1] || labelOf(group.base) || group.base;
    return column ? [{ name, label, colour: seriesColour(place), column, hasBand: true, isFilled: isAlone }] : [];
  });
  return { lines, leftOut: group.names.length - lines.length };
}
