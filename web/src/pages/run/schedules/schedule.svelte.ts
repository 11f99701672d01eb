// A schedule as its page shows it: asked for again while somebody looks, oftener while a run is near.
import { api, take } from '../../../api/client';
import { failureOf, type Failure } from '../../../api/failure';
import type { Schedule, SchedulePatch } from '../../../api/types';
import { clock } from '../../../live/clock.svelte';

const SOON_MS = 2_000;
const LATER_MS = 15_000;
/** A run begins some seconds after it is due, and what it came to is known some seconds after its end. */
const NEAR_MS = 10_000;

export class ShownSchedule {
  readonly id: string;
  value = $state.raw<Schedule | null>(null);
  failure = $state.raw<Failure | null>(null);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isWatched = false;

  constructor(id: string) {
    this.id = id;
  }

  /** Watches until what it gives is called. */
  watch(): () => void {
    this.#isWatched = true;
    const seen = () => document.hidden || void this.load();
    document.addEventListener('visibilitychange', seen);
    void this.load();
    return () => {
      this.#isWatched = false;
      clearTimeout(this.#timer);
      document.removeEventListener('visibilitychange', seen);
    };
  }

  async load(): Promise<void> {
    clearTimeout(this.#timer);
    try {
      this.value = await take(api.GET('/api/v1/schedules/{id}', this.#path));
      this.failure = null;
    } catch (error) {
      this.failure = failureOf(error);
      if (!this.failure.isPassing) return;
    }
    clearTimeout(this.#timer);
    if (this.#isWatched && !document.hidden) this.#timer = setTimeout(() => void this.load(), this.#pause());
  }

  async change(patch: SchedulePatch): Promise<Schedule> {
    this.value = await take(api.PUT('/api/v1/schedules/{id}', { ...this.#path, body: patch }));
    return this.value;
  }

  #pause(): number {
    if (this.failure || !this.value) return LATER_MS;
    const next = Date.parse(this.value.next_at ?? '') - clock.present();
    const isRunning = this.value.runs.some((run) => run.outcome === 'running');
    if (isRunning || next < NEAR_MS) return SOON_MS;
    return Number.isNaN(next) ? LATER_MS : Math.min(LATER_MS, next);
  }

  get #path() {
    return { params: { path: { id: this.id } } };
  }
}
