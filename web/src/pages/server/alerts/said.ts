// What a trial came to, in words.
import * as m from '#messages/serverAlerts';
import type { Metric, Threshold } from '../../../api/types';
import { duration } from '../../../lib/format';
import { METRICS } from '../../alerts/words';
import { firingSeconds, isUpper, type Trial } from './trial';

const DAY = 86_400;
/** A day that begins so much later is a whole one still. */
const SLACK = 600;
/** More alerts than that in a day are a nuisance. */
const MANY = 10;

const lasting = (seconds: number) => duration(Math.max(1, Math.round(seconds)) * 1000);

/** The last 24 hours, or what of them was measured. */
function timeOf(trial: Trial, now: number): string {
  const measured = trial.since === null ? 0 : now - trial.since;
  return measured > DAY - SLACK ? m.lastDay() : m.known({ duration: lasting(measured) });
}

/** Whether it would have fired, how often, and for how long. */
export function verdictOf(trial: Trial, now: number): string {
  const { firings } = trial;
  if (trial.since === null) return m.noHistory();
  const time = timeOf(trial, now);
  if (firings.length === 0) return m.notFired({ time });
  return m.fired({
    count: firings.length,
    time,
    duration: lasting(firingSeconds(firings)),
    open: firings.at(-1)?.isOpen ? 'yes' : 'other',
  });
}

/** What makes it quieter, where it would have been a nuisance. */
export function adviceOf(trial: Trial, rule: { clear: number | null; seconds: number }): string | null {
  if (trial.firings.length <= MANY) return null;
  if (rule.clear === null) return rule.seconds === 0 ? m.adviceBoth() : m.adviceBothLonger();
  return rule.seconds === 0 ? m.adviceDuration() : m.adviceLonger();
}

/** `Highest 97 %`. */
export function extremeOf(trial: Trial, metric: Metric, comparison: Threshold['comparison']): string | null {
  if (trial.worst === null) return null;
  return (isUpper(comparison) ? m.highest : m.lowest)({ value: METRICS[metric].write(trial.worst) });
}
