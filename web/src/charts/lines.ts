import type { Unit } from './units';
import type { Column } from './series';
import type { Tone } from './colours';

/** One line of a chart. */
export interface Line {
  /** Of the series. */
  name: string;
  label: string;
  /** A custom property of tokens.css. */
  colour: string;
  column: Column;
  /** Shows the least and the greatest behind the mean. */
  hasBand?: boolean;
  /** Fills what is below it. */
  isFilled?: boolean;
  /** Shows the greatest values in the place of means. */
  isPeak?: boolean;
  isDashed?: boolean;
  /** How it was a day or a week before. */
  isFaint?: boolean;
}

/** A line across: a limit. `shade` is the side where it is exceeded. */
export interface Limit {
  value: number;
  label: string;
  tone: Tone;
  shade?: 'above' | 'below' | undefined;
  /** On which side of the line its label stands. Defaults to above where there is room. */
  side?: 'above' | 'below' | undefined;
  /** At which end its label stands. Defaults to the right one. */
  edge?: 'left' | 'right' | undefined;
  /** It can be dragged: called with the value that it is dragged to. */
  move?: ((value: number) => void) | undefined;
}

export interface Drawing {
  unit: Unit;
  times: number[];
  lines: Line[];
  limits: Limit[];
  /** A top of the axis that does not depend on the values. */
  top: number | null;
}

/** What of a chart cannot change without making a new chart. */
export function shapeOf(lines: Line[], unit: Unit): string {
  return [unit, ...lines.map((line) => `${line.name}|${line.hasBand ?? false}|${line.isFilled ?? false}`)].join('\n');
}

/** Which lines are hidden after one was pressed. `alone` hides all others, or shows all when they are hidden. */
export function toggled(hidden: ReadonlySet<string>, lines: Line[], name: string, alone: boolean): ReadonlySet<string> {
  if (alone) {
    const others = lines.map((line) => line.name).filter((other) => other !== name);
    return new Set(hidden.size === others.length && !hidden.has(name) ? [] : others);
  }
  const next = new Set(hidden);
  if (!next.delete(name)) next.add(name);
  return next;
}

/** Lines of the greatest values in the place of means. What lies between the least and the greatest stays shaded. */
export function peaked(lines: readonly Line[]): Line[] {
  return lines.map((line) => ({ ...line, isPeak: true, column: { ...line.column, avg: line.column.max } }));
}
