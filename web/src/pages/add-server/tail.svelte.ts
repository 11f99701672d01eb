// The last lines of a server's system log, for a page that shows a few of them.
import { live, type Message } from '../../live/socket.svelte';

/** So many lines are shown. */
const SHOWN = 9;

export interface TailLine {
  key: number;
  time: string | null;
  text: string;
}

export class Tail {
  lines = $state.raw<TailLine[]>([]);
  /** Whether the log is open: without lines it is empty. */
  isOpen = $state(false);
  /** Why there is none. */
  problem = $state<string | null>(null);
  #count = 0;
  /** The lines are of the connection before. */
  #isStale = false;

  /** Follows the log until what it gives is called. */
  watch(serverId: string): () => void {
    return live.watch(`/ws/logs/${encodeURIComponent(serverId)}?tail=${SHOWN}`, {
      // A connection that comes back begins with the last lines again: until then those of before stay.
      opened: () => {
        this.isOpen = true;
        this.#isStale = true;
        this.problem = null;
      },
      message: (message) => this.#told(message),
      closed: () => (this.isOpen = false),
    }).stop;
  }

  #told(message: Message): void {
    if (message.type === 'log') {
      this.#renew();
      const { timestamp, message: text } = message.data as { timestamp: string | null; message: string };
      this.#count += 1;
      this.lines = [...this.lines.slice(1 - SHOWN), { key: this.#count, time: timestamp, text }];
    } else if (message.type === 'error') {
      this.#renew();
      this.problem = (message.data as { detail: string }).detail;
    }
  }

  #renew(): void {
    if (this.#isStale) this.lines = [];
    this.#isStale = false;
  }
}
