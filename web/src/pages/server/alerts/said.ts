// What a trial came to, in words.
import type { Metric, Threshold } from '../../../api/types';
import { duration, plural } from '../../../lib/format';
import { METRICS } from '../../alerts/words';
import { firingSeconds, isUpper, type Trial } from './trial';

const DAY = 86_400;
/** A day that begins so much later is a whole one still. */
const SLACK = 600;
/** More alerts than that in a day are a nuisance. */
const MANY = 10;

const lasting = (seconds: number) => duration(Math.max(1, Math.round(seconds)) * 1000);

/** `the last 24 h`, or what of it was measured. */
function timeOf(trial: Trial, now: number): string {
  const measured = trial.since === null ? 0 : now - trial.since;
  return measured > DAY - SLACK ? 'the last 24 h' : `the ${lasting(measured)} that are known`;
}

/** Whether it would have fired, how often, and for how long. */
export function verdictOf(trial: Trial, now: number): string {
  const { firings } = trial;
  if (trial.since === null) return 'Nothing was measured in the last 24 h, so there is no telling.';
  const time = timeOf(trial, now);
  if (firings.length === 0) return `It would not have fired in ${time}.`;
  const often = firings.length === 1 ? 'once' : plural(firings.length, 'time');
  const inAll = firings.length === 1 ? '' : ' in all';
  const open = firings.at(-1)?.isOpen ? ', and it would be firing now' : '';
  return `It would have fired ${often} in ${time}, for ${lasting(firingSeconds(firings))}${inAll}${open}.`;
}

/** What makes it quieter, where it would have been a nuisance. */
export function adviceOf(trial: Trial, rule: { clear: number | null; seconds: number }): string | null {
  if (trial.firings.length <= MANY) return null;
  const means = [
    ...(rule.clear === null ? ['a value to recover at'] : []),
    rule.seconds === 0 ? 'a time that it must hold' : 'a longer time that it must hold',
  ];
  const all = means.join(' or ');
  return `That is often: ${all} makes it quieter.`;
}

/** `Highest 97 %`. */
export function extremeOf(trial: Trial, metric: Metric, comparison: Threshold['comparison']): string | null {
  if (trial.worst === null) return null;
  return `${isUpper(comparison) ? 'Highest' : 'Lowest'} ${METRICS[metric].write(trial.worst)}`;
}
