import * as m from '#messages/thresholds';
import { api, take, takeAll, takePage } from '../../api/client';
import { failureOf } from '../../api/failure';
import type { Threshold } from '../../api/types';
import { confirm } from '../../ui/confirm.svelte';
import { Loaded } from '../../ui/form.svelte';
import { toasts } from '../../ui/toasts.svelte';
import { bodyOf, type Input } from './input';
import { tellIfNobody } from './nobody';
import { condition } from './words';

/** All thresholds of the caller, or those of one server that is shared with them, and what can be done to one. */
export class ThresholdList {
  readonly all: Loaded<Threshold[]>;

  constructor(serverId: string | null = null) {
    const of = serverId === null ? {} : { server_id: serverId };
    this.all = new Loaded(() =>
      takeAll((offset, limit) =>
        takePage(api.GET('/api/v1/alerts/thresholds', { params: { query: { limit, offset, ...of } } })),
      ),
    );
    void this.all.load();
  }

  /** Makes one, or changes the one with this id. */
  async save(id: string | null, input: Input): Promise<void> {
    const body = bodyOf(input);
    if (id) await take(api.PUT('/api/v1/alerts/thresholds/{id}', { params: { path: { id } }, body }));
    else await take(api.POST('/api/v1/alerts/thresholds', { body }));
    await this.all.load();
    void tellIfNobody();
  }

  async enable(threshold: Threshold, enabled: boolean): Promise<void> {
    await this.#act(() =>
      take(api.PUT('/api/v1/alerts/thresholds/{id}', { params: { path: { id: threshold.id } }, body: { enabled } })),
    );
  }

  async remove(threshold: Threshold): Promise<void> {
    const sure = await confirm.ask({
      title: m.deleteTitle(),
      text: m.deleteText({ rule: condition(threshold) }),
      action: m.deleteTitle(),
      danger: true,
    });
    if (!sure) return;
    await this.#act(async () => {
      try {
        await take(api.DELETE('/api/v1/alerts/thresholds/{id}', { params: { path: { id: threshold.id } } }));
      } catch (error) {
        // One that is gone already is what was wanted.
        if (failureOf(error).status !== 404) throw error;
      }
    });
  }

  async #act(change: () => Promise<unknown>): Promise<void> {
    try {
      await change();
    } catch (error) {
      toasts.failed(failureOf(error).message);
    }
    await this.all.load();
  }
}
