import { api, takePage, type Page } from '../../../api/client';
import { failureOf, type Failure } from '../../../api/failure';
import type { CommandSummary } from '../../../api/types';
import { joined } from './joined';

const PAGE = 50;

/** What was run on a server, the newest first, as far as it was asked for. */
export class History {
  items = $state.raw<CommandSummary[]>([]);
  total = $state(0);
  isKnown = $state(false);
  busy = $state(false);
  failure = $state.raw<Failure | null>(null);
  readonly #serverId: string;

  constructor(serverId: string) {
    this.#serverId = serverId;
  }

  readonly hasMore = $derived(this.items.length < this.total);

  /** Reads the newest again. */
  load(): Promise<void> {
    return this.#take(0);
  }

  more(): Promise<void> {
    return this.busy ? Promise.resolve() : this.#take(this.items.length);
  }

  /** Puts one at its place that is known already. */
  add(command: CommandSummary): void {
    const isNew = !this.items.some((item) => item.command_id === command.command_id);
    this.items = joined(this.items, [command]);
    if (isNew) this.total += 1;
  }

  async #take(offset: number): Promise<void> {
    this.busy = true;
    try {
      const page: Page<CommandSummary> = await takePage(
        api.GET('/api/v1/commands/{server_id}', {
          params: { path: { server_id: this.#serverId }, query: { limit: PAGE, offset } },
        }),
      );
      this.items = joined(this.items, page.items);
      this.total = page.total;
      this.isKnown = true;
      this.failure = null;
    } catch (error) {
      this.failure = failureOf(error);
    } finally {
      this.busy = false;
    }
  }
}
