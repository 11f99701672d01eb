// An alert in a sentence, from its own fields: the same wherever it is shown, in the reader's language. The fleet shows some, so
// this is small.
import * as m from '#messages/alertSentence';
import type { Alert } from '../../api/types';
import { duration, number, rate, shortPercent } from '../../lib/format';
import { unitOf, valueText } from '../../lib/units';

type Writing = (value: number) => string;

const WRITE: Partial<Record<Alert['metric_type'], Writing>> = {
  load: (value) => number(value, 2),
  network_in: rate,
  network_out: rate,
  temperature: (value) => `${number(value, 1)} °C`,
};

/** A share of less than a percent is not nothing. */
const share: Writing = (value) => shortPercent(value, Math.abs(value) < 1 ? 2 : 1);

/** How the service ends what it says of a container; which of the three it is stands in no field. */
const TROUBLE =
  / (?:has (stopped)|is (unhealthy)|keeps (restarting) \(\d+ times in 5 min)(?:[ ,]+\(?exit code (-?\d+))?\)?$/;

/** With what the service begins a sentence that has no name there. */
const BEGINNING = /^(?:container|schedule|cpu|memory|swap|disk|load|network|temperature)(?= )/;

/** As the service says it: names keep their spelling, also at its beginning. */
const asWritten = ({ message }: Alert) =>
  message.replace(BEGINNING, (word) => (word === 'cpu' ? 'CPU' : word.charAt(0).toUpperCase() + word.slice(1)));

/**
 * `Disk /var above 90 % (peak 96.2 %)`, `Offline for 21 h`; what is over is in the past tense. `now` in milliseconds. With the
 * server where nothing beside it names it.
 */
export const sentenceOf = (alert: Alert, now: number, server?: string): string => on(server, alert, told(alert, now));

/** `Disk /var above 90 %`, `Offline`: what stays true, whenever it is read. */
export const titleOf = (alert: Alert, server?: string): string => on(server, alert, told(alert, null));

/** The service's own sentence names the server. */
function on(server: string | undefined, alert: Alert, sentence: string | null): string {
  if (sentence === null) return asWritten(alert);
  return server ? m.onServer({ server, sentence }) : sentence;
}

/** Without `now` what it is about alone; null where only the service knows what to say. */
function told(alert: Alert, now: number | null): string | null {
  switch (alert.metric_type) {
    case 'offline':
      return now === null ? m.offline() : absence(alert, now);
    case 'reboot':
      return m.rebooted({ count: now === null ? 1 : alert.peak_value });
    case 'container_state':
      return container(alert);
    case 'schedule':
      return null;
    default:
      return crossing(alert, now !== null);
  }
}

const tense = ({ status }: Alert) => (status === 'resolved' ? status : 'other');

/** It fired when the agent had been away for `value` seconds. Its peak may be behind. */
function absence(alert: Alert, now: number): string {
  const end = alert.resolved_at ? Date.parse(alert.resolved_at) : now;
  const away = Math.max(0, end - Date.parse(alert.triggered_at)) + alert.value * 1000;
  return m.offlineFor({ status: tense(alert), duration: duration(away) });
}

function container({ message, target }: Alert): string | null {
  const [found, stopped, unhealthy, , code] = TROUBLE.exec(message) ?? [];
  if (found === undefined || !target) return null;
  const sentence = m.container({ name: target, trouble: stopped ? 'stopped' : unhealthy ? 'unhealthy' : 'other' });
  return code === undefined ? sentence : m.withCode({ sentence, code });
}

function crossing(alert: Alert, isWhole: boolean): string | null {
  const { metric_type: metric, comparison } = alert;
  const name = metric === 'series' ? alert.series : m.metric({ metric: metric as 'cpu' });
  if (!name) return null;
  const target = alert.target ?? alert.worst_target;
  const write = metric === 'series' ? ofSeries(alert.unit) : (WRITE[metric] ?? share);
  const sentence = m.crossed({
    what: target ? whole(metric, name, target) : name,
    status: isWhole ? tense(alert) : 'other',
    comparison: comparison === 'lte' ? 'other' : comparison,
    limit: write(alert.threshold_value),
  });
  const side = comparison === 'lt' || comparison === 'lte' ? 'lt' : 'other';
  return isWhole ? m.withPeak({ sentence, side, peak: write(alert.peak_value) }) : sentence;
}

/** `Disk /var`, `fan_speed of case`. */
const whole = (metric: Alert['metric_type'], name: string, target: string) =>
  metric === 'series' ? m.ofTarget({ name, target }) : `${name} ${target}`;

const ofSeries = (unit: string | null | undefined): Writing =>
  unit ? (value) => valueText(value, unitOf(unit, 'gauge')) : (value) => number(value, 3);
