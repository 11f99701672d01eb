import { api, takeAll, takePage } from '../../../api/client';
import { failureOf, type Failure } from '../../../api/failure';
import type { Alert } from '../../../api/types';
import { worstFirst } from '../../../live/alerts.svelte';

/** The unresolved alerts of a server of somebody else, which are not among the caller's own. */
export class SharedAlerts {
  isKnown = $state(false);
  failure = $state.raw<Failure | null>(null);
  #open = $state.raw<ReadonlyMap<string, Alert>>(new Map());
  readonly #serverId: string;
  /** Those that the socket has sent while the list is being read: they are newer than it. */
  #newer: Map<string, Alert> | null = null;

  constructor(serverId: string) {
    this.#serverId = serverId;
  }

  readonly open = $derived([...this.#open.values()].sort(worstFirst));

  async load(): Promise<void> {
    if (this.#newer) return;
    const newer = new Map<string, Alert>();
    this.#newer = newer;
    try {
      const found = await Promise.all((['active', 'acknowledged'] as const).map((status) => this.#read(status)));
      const open = new Map(found.flat().map((alert) => [alert.id, alert]));
      for (const alert of newer.values()) place(open, alert);
      this.#open = open;
      this.isKnown = true;
      this.failure = null;
    } catch (error) {
      this.failure = failureOf(error);
    } finally {
      this.#newer = null;
    }
  }

  #read(status: Alert['status']): Promise<Alert[]> {
    const server_id = this.#serverId;
    return takeAll((offset, limit) =>
      takePage(api.GET('/api/v1/alerts', { params: { query: { server_id, status, offset, limit } } })),
    );
  }

  /** The socket of the server has sent one. */
  told(alert: Alert): void {
    this.#newer?.set(alert.id, alert);
    const open = new Map(this.#open);
    place(open, alert);
    this.#open = open;
  }
}

function place(open: Map<string, Alert>, alert: Alert): void {
  if (alert.status === 'resolved') open.delete(alert.id);
  else open.set(alert.id, alert);
}
