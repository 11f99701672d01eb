// What the chart beside a threshold shows: the numbers that it is about, its values as lines to drag, and when it would have fired.
import * as m from '#messages/serverAlerts';
import type { Severity } from '../../../api/types';
import { seriesColour } from '../../../charts/colours';
import type { Limit, Line } from '../../../charts/lines';
import type { Mark } from '../../../charts/marks';
import { newest, type Column } from '../../../charts/series';
import type { Input } from '../../alerts/input';
import { severityTone } from '../../alerts/severity';
import { COMPARISONS, METRICS } from '../../alerts/words';
import { parts } from '../overview/names';
import { namesOf, scaled } from './sources';
import { isUpper, type Trial } from './trial';

/** More lines than that cannot be told apart. */
const MOST_LINES = 6;
/** More marks than that hide the line. */
const MOST_MARKS = 40;

/** Of what a threshold looks at, the worst. */
export function linesOf(
  columns: ReadonlyMap<string, Column>,
  { metric, target, comparison }: Input,
  scale: number,
): Line[] {
  const by = isUpper(comparison) ? 1 : -1;
  const weightOf = (one: string) => {
    const column = columns.get(one);
    return by * ((column && newest(column)) ?? -Infinity * by);
  };
  const all = namesOf(columns.keys(), metric, target.trim());
  const worst = [...all].sort((one, other) => weightOf(other) - weightOf(one)).slice(0, MOST_LINES);
  const kept = all.filter((one) => worst.includes(one));
  return kept.flatMap((one, place) => {
    const column = columns.get(one);
    const label = parts(one)[1] || METRICS[metric].label();
    const isAlone = kept.length === 1;
    const shape = { hasBand: isAlone, isFilled: isAlone && metric !== 'temperature' };
    return column ? [{ name: one, label, colour: seriesColour(place), column: scaled(column, scale), ...shape }] : [];
  });
}

/** Where it fires and where it recovers. Dragging one writes it into the input. */
export function limitsOf(input: Input): Limit[] {
  const { write } = METRICS[input.metric];
  const found: Limit[] = [];
  const above = isUpper(input.comparison);
  if (input.clear !== null)
    found.push({
      value: input.clear,
      label: m.recoversAt({ value: write(input.clear) }),
      tone: 'ok',
      side: above ? 'below' : 'above',
      move: (value) => (input.clear = value),
    });
  if (input.value !== null)
    found.push({
      value: input.value,
      label: m.firesAt({ comparison: COMPARISONS[input.comparison], value: write(input.value) }),
      tone: severityTone(input.severity),
      shade: above ? 'above' : 'below',
      side: above ? 'above' : 'below',
      move: (value) => (input.value = value),
    });
  return found;
}

/** When it would have fired and recovered. */
export function marksOf({ firings }: Trial, severity: Severity): Mark[] {
  if (firings.length > MOST_MARKS) return [];
  return firings.flatMap(({ from, to, isOpen }): Mark[] => [
    { id: `fired:${from}`, at: from, kind: 'alert', tone: severityTone(severity), title: m.wouldHaveFired() },
    ...(isOpen
      ? []
      : [{ id: `ended:${to}`, at: to, kind: 'alert' as const, tone: 'ok' as const, title: m.wouldHaveRecovered() }]),
  ]);
}
