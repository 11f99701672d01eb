// What each series of a server is now, as its samples come.
import * as m from '#messages/serverAlerts';
import type { Metric, Threshold } from '../../../api/types';
import { Rates } from '../../../charts/rates';
import { readingsOf, type Value } from '../../../charts/series';
import { METRICS, type Present } from '../../alerts/words';
import { parts } from '../overview/names';
import type { ServerView } from '../view.svelte';
import { namesOf, scaleOf } from './sources';
import { crosses, isUpper } from './trial';

interface Reading {
  value: number;
  /** Which disk, interface or sensor that is, where there are several. */
  of: string;
}

export class Readings {
  #values = $state.raw<Map<string, Value>>(new Map());
  readonly #rates = new Rates();
  readonly #view: ServerView;

  constructor(view: ServerView) {
    this.#view = view;
    this.#take();
  }

  /** Follows the samples until what it gives is called. */
  follow(): () => void {
    return this.#view.onSample(() => this.#take());
  }

  /** The worst of a metric now; null where there is no such thing, or it is not known. */
  of(metric: Metric, target: string, comparison: Threshold['comparison']): Reading | null {
    const scale = scaleOf(metric, this.#view.latest);
    if (scale === null) return null;
    let found: Reading | null = null;
    for (const name of namesOf(this.#values.keys(), metric, target)) {
      const value = this.#values.get(name) ?? null;
      if (value === null) continue;
      const isWorse =
        found === null || (isUpper(comparison) ? value * scale > found.value : value * scale < found.value);
      if (isWorse) found = { value: value * scale, of: parts(name)[1] };
    }
    return found;
  }

  presentOf(threshold: Threshold): Present {
    const view = this.#view;
    if (threshold.metric_type === 'offline') {
      if (view.status === 'pending') return { text: m.neverConnected(), tone: 'faint' };
      return view.status === 'online' ? { text: m.online(), tone: '' } : { text: m.offline(), tone: 'bad' };
    }
    if (threshold.metric_type === 'container_state' || threshold.metric_type === 'reboot')
      return { text: '–', tone: 'faint' };
    const reading = this.of(threshold.metric_type, threshold.target ?? '', threshold.comparison);
    if (!reading) return { text: '–', tone: 'faint' };
    const text = METRICS[threshold.metric_type].write(reading.value);
    if (view.isStale) return { text, tone: 'faint' };
    const isOver = threshold.enabled && crosses({ ...threshold, value: threshold.threshold_value }, reading.value);
    return { text, tone: isOver ? 'bad' : '' };
  }

  #take(): void {
    const { latest, intervalMs } = this.#view;
    if (latest) this.#values = readingsOf(latest, this.#rates, (intervalMs ?? 5_000) / 1000);
  }
}
