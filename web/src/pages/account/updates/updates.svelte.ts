// The release, one's servers and the newest rollout, as they are now; and one rollout with its servers.
import { api, take } from '../../../api/client';
import type { Rollout, RolloutSummary, Updates } from '../../../api/types';
import { Polled } from '../../../ui/polled.svelte';
import { isOpen } from './words';

const WHILE_OPEN_MS = 2_000;
const OTHERWISE_MS = 15_000;
/** The answer for many servers takes time: the pause until the next request is so many times as long. */
const REST = 4;

function pauseOf(rollout: RolloutSummary | null | undefined, tookMs: number): number {
  const pause = rollout && isOpen(rollout) ? WHILE_OPEN_MS : OTHERWISE_MS;
  return Math.min(OTHERWISE_MS, Math.max(pause, REST * tookMs));
}

export class PolledUpdates extends Polled<Updates> {
  constructor() {
    super(
      () => take(api.GET('/api/v1/updates')),
      ({ rollout }, tookMs) => pauseOf(rollout, tookMs),
    );
  }
}

export type Step = 'pause' | 'resume' | 'cancel';

export class PolledRollout extends Polled<Rollout> {
  readonly #path: { params: { path: { id: string } } };

  constructor(id: string) {
    const path = { params: { path: { id } } };
    super(
      () => take(api.GET('/api/v1/updates/rollouts/{id}', path)),
      (rollout, tookMs) => (isOpen(rollout) ? pauseOf(rollout, tookMs) : null),
    );
    this.#path = path;
  }

  async step(step: Step): Promise<void> {
    const path = this.#path;
    const request =
      step === 'pause'
        ? api.POST('/api/v1/updates/rollouts/{id}/pause', path)
        : step === 'resume'
          ? api.POST('/api/v1/updates/rollouts/{id}/resume', path)
          : api.POST('/api/v1/updates/rollouts/{id}/cancel', path);
    this.show(await take(request));
  }
}
