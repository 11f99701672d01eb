// What a threshold would have done in a time that was measured. The service looks at each sample; here a point may stand for
// a minute of them, of which the least and the greatest are known, so times are right to a point.
import type { Threshold } from '../../../api/types';
import { usualDistance } from '../../../charts/gaps';
import type { Column, Table } from '../../../charts/series';

export interface Rule {
  comparison: Threshold['comparison'];
  value: number;
  /** Where it has recovered; at the value itself when null. */
  clear: number | null;
  /** How long it must hold. */
  seconds: number;
}

/** What was measured at a time, over all targets: what is nearest to good, and what is worst. */
export interface Point {
  at: number;
  mildest: number;
  worst: number;
}

export interface Firing {
  from: number;
  to: number;
  /** It has not recovered. */
  isOpen: boolean;
}

export interface Trial {
  firings: Firing[];
  /** When the first point was measured; null when there is none. */
  since: number | null;
  /** The worst value of all. */
  worst: number | null;
}

/** The shortest pause that ends a run of crossing samples, in seconds; as the service has it. */
const LEAST_GAP = 300;
/** A pause of so many usual distances is no unusual one. */
const USUAL = 2.5;

const COMPARE: Record<Rule['comparison'], (value: number, limit: number) => boolean> = {
  gt: (value, limit) => value > limit,
  gte: (value, limit) => value >= limit,
  lt: (value, limit) => value < limit,
  lte: (value, limit) => value <= limit,
};

export function isUpper(comparison: Rule['comparison']): boolean {
  return comparison === 'gt' || comparison === 'gte';
}

export function crosses(rule: Pick<Rule, 'comparison' | 'value'>, value: number): boolean {
  return COMPARE[rule.comparison](value, rule.value);
}

/** The worst of several columns at each time. Where nothing was measured there is no point. */
export function pointsOf(table: Pick<Table, 'times'>, columns: Column[], comparison: Rule['comparison']): Point[] {
  const worse = isUpper(comparison) ? Math.max : Math.min;
  const points: Point[] = [];
  for (const [place, at] of table.times.entries()) {
    let point: Point | null = null;
    for (const column of columns) {
      const mean = column.avg[place];
      if (mean == null) continue;
      const least = column.min[place] ?? mean;
      const most = column.max[place] ?? mean;
      const [mildest, worst] = isUpper(comparison) ? [least, most] : [most, least];
      point = {
        at,
        mildest: point ? worse(point.mildest, mildest) : mildest,
        worst: point ? worse(point.worst, worst) : worst,
      };
    }
    if (point) points.push(point);
  }
  return points;
}

/** Tries a rule on points. `width` is how many seconds a point stands for, 0 for a sample; `now` is where they end. */
export function tryOut(points: readonly Point[], rule: Rule, width: number, now: number): Trial {
  const worse = isUpper(rule.comparison) ? Math.max : Math.min;
  const goesOn = (value: number) => COMPARE[rule.comparison](value, rule.clear ?? rule.value);
  const usual = usualDistance(
    points.map((point) => point.at),
    Math.max(1, width),
  );
  const gap = Math.max(LEAST_GAP, 2 * rule.seconds, USUAL * usual);
  const trial: Trial = { firings: [], since: points[0]?.at ?? null, worst: null };
  let firing: Firing | null = null;
  let since: number | null = null;
  let before: number | null = null;
  for (const { at, mildest, worst } of points) {
    trial.worst = trial.worst === null ? worst : worse(trial.worst, worst);
    // No data is no recovery, but a long pause ends a run that has not fired.
    if (before !== null && at - before > gap) since = null;
    before = at;
    if (firing) {
      if (goesOn(mildest)) continue;
      firing.to = at;
      firing.isOpen = false;
      firing = null;
      since = null;
      continue;
    }
    since = crosses(rule, mildest) ? (since ?? at) : null;
    const isDue = rule.seconds === 0 ? crosses(rule, worst) : since !== null && at + width - since >= rule.seconds;
    if (!isDue) continue;
    firing = { from: since === null ? at : Math.max(at, since + rule.seconds), to: now, isOpen: true };
    trial.firings.push(firing);
  }
  return trial;
}

/** How long it would have fired in all, in seconds. */
export function firingSeconds(firings: readonly Firing[]): number {
  return firings.reduce((sum, { from, to }) => sum + Math.max(0, to - from), 0);
}

/** When nothing was measured for longer than `seconds`, between points and since the last one. */
export function pausesOf(times: readonly number[], seconds: number, now: number): Firing[] {
  const found: Firing[] = [];
  for (const [place, from] of times.entries()) {
    const next = times[place + 1];
    const to = next ?? now;
    if (to - from > seconds) found.push({ from, to, isOpen: next === undefined });
  }
  return found;
}
