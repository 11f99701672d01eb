// A batch as its page shows it. It is asked for again and again while it runs, and by no one while nobody looks.
import { clock } from '../../live/clock.svelte';
import { api, take } from '../../api/client';
import { failureOf, type Failure } from '../../api/failure';
import type { Batch } from '../../api/types';
import { kept } from './results';

const LOOK_MS = 1_000;
/** Of large batches the answer itself takes time: they are asked for so many times more seldom than that. */
const REST = 4;
const MOST_MS = 15_000;

export class ShownBatch {
  readonly id: string;
  value = $state.raw<Batch | null>(null);
  failure = $state.raw<Failure | null>(null);
  /** How far the service's clock is ahead of this one. */
  clockOffsetMs = $state(0);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isWatched = false;
  #failures = 0;

  constructor(id: string) {
    this.id = id;
  }

  get isUnderWay(): boolean {
    return this.value !== null && !this.value.finished_at;
  }

  /** Watches until what it gives is called. */
  watch(): () => void {
    this.#isWatched = true;
    const seen = () => {
      if (!document.hidden && (this.isUnderWay || !this.value)) void this.load();
    };
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
    const asked = performance.now();
    try {
      const request = api.GET('/api/v1/commands/batches/{id}', { params: { path: { id: this.id } } });
      this.#show(await take(request));
      const told = Date.parse((await request).response.headers.get('date') ?? '');
      if (told) this.clockOffsetMs = told - clock.present();
      this.failure = null;
      this.#failures = 0;
    } catch (error) {
      this.failure = failureOf(error);
      this.#failures += 1;
      if (!this.failure.isPassing) return;
    }
    clearTimeout(this.#timer);
    const isOver = this.value !== null && !this.isUnderWay;
    if (!this.#isWatched || document.hidden || isOver) return;
    const pause = Math.max(LOOK_MS * 2 ** this.#failures, REST * (performance.now() - asked));
    this.#timer = setTimeout(() => void this.load(), Math.min(MOST_MS, pause));
  }

  /** What runs is ended, what waits does not run any more. */
  async cancel(): Promise<void> {
    this.#show(await take(api.POST('/api/v1/commands/batches/{id}/cancel', { params: { path: { id: this.id } } })));
    void this.load();
  }

  #show(batch: Batch): void {
    this.value = { ...batch, results: kept(this.value?.results ?? [], batch.results) };
  }
}
