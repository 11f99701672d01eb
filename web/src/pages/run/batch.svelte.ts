// A batch as its page shows it. It is asked for again and again while it runs.
import { clock } from '../../live/clock.svelte';
import { api, take } from '../../api/client';
import type { Batch } from '../../api/types';
import { Polled } from '../../ui/polled.svelte';
import { kept } from './results';

const LOOK_MS = 1_000;
/** The answer for a large batch takes time: the pause until the next request is so many times as long. */
const REST = 4;
const MOST_MS = 15_000;

export class PolledBatch extends Polled<Batch> {
  /** How far the service's clock is ahead of this one. */
  clockOffsetMs = $state(0);
  readonly #path: { params: { path: { id: string } } };

  constructor(id: string) {
    super(
      () => this.#ask(),
      ({ finished_at }, tookMs) => (finished_at ? null : Math.min(MOST_MS, Math.max(LOOK_MS, REST * tookMs))),
    );
    this.#path = { params: { path: { id } } };
  }

  /** What runs is ended, what waits does not run any more. */
  async cancel(): Promise<void> {
    this.show(this.#joined(await take(api.POST('/api/v1/commands/batches/{id}/cancel', this.#path))));
    void this.load();
  }

  async #ask(): Promise<Batch> {
    const request = api.GET('/api/v1/commands/batches/{id}', this.#path);
    const batch = await take(request);
    const told = Date.parse((await request).response.headers.get('date') ?? '');
    if (told) this.clockOffsetMs = told - clock.present();
    return this.#joined(batch);
  }

  #joined(batch: Batch): Batch {
    return { ...batch, results: kept(this.value?.results ?? [], batch.results) };
  }
}
