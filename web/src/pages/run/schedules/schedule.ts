// A schedule as its page shows it: asked for more often while a run is near.
import { api, take } from '../../../api/client';
import type { Schedule } from '../../../api/types';
import { clock } from '../../../live/clock.svelte';
import { Polled } from '../../../ui/polled.svelte';

const SOON_MS = 2_000;
const LATER_MS = 15_000;
/** A run begins some seconds after it is due, and what it came to is known some seconds after its end. */
const NEAR_MS = 10_000;

export function polledSchedule(id: string): Polled<Schedule> {
  return new Polled(() => take(api.GET('/api/v1/schedules/{id}', { params: { path: { id } } })), pauseOf);
}

function pauseOf({ next_at, runs }: Schedule): number {
  const next = Date.parse(next_at ?? '') - clock.present();
  if (runs.some((run) => run.outcome === 'running') || next < NEAR_MS) return SOON_MS;
  return Number.isNaN(next) ? LATER_MS : Math.min(LATER_MS, next);
}
