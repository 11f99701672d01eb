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
  /** More are on their way. */
  busy = $state(false);
  /** The newest are. */
  isLoading = $state(false);
  failure = $state.raw<Failure | null>(null);
  readonly #serverId: string;
  #loading: Promise<void> | null = null;
  #isOld = false;

  constructor(serverId: string) {
    this.#serverId = serverId;
  }

  readonly hasMore = $derived(this.items.length < this.total);

  /** Reads the newest again. An answer that is on its way may be from before what is asked for, so one more follows it. */
  load(): Promise<void> {
    this.#isOld = true;
    return (this.#loading ??= this.#load());
  }

  async more(): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    await this.#take(this.items.length);
    this.busy = false;
  }

  /** Puts one at its place that is known already. */
  add(command: CommandSummary): void {
    const isNew = !this.items.some((item) => item.command_id === command.command_id);
    this.items = joined(this.items, [command]);
    if (isNew) this.total += 1;
    // An answer that is on its way may not have it.
    this.#isOld = true;
  }

  async #load(): Promise<void> {
    this.isLoading = true;
    while (this.#isOld) {
      this.#isOld = false;
      await this.#take(0);
    }
    this.isLoading = false;
    this.#loading = null;
  }

  async #take(offset: number): Promise<void> {
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
    }
  }
}
