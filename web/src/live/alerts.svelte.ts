import type { Alert } from '../api/types';
import { live, type Message } from './socket.svelte';

const ORDER = { critical: 0, warning: 1, info: 2 } as const;

/** What a socket tells when it was opened comes within so long; until then what was known before is shown. */
const OPENING_MS = 400;
/** Hundreds may come at once: they are shown together. */
const TOGETHER_MS = 50;

/** The worst first, then the newest. */
function worstFirst(a: Alert, b: Alert): number {
  return ORDER[a.severity] - ORDER[b.severity] || b.triggered_at.localeCompare(a.triggered_at);
}

/** What is wrong now: the caller's alerts that are not resolved, as they change. Watched while somebody is signed in. */
class LiveAlerts {
  /** What is shown; what is known may be a moment ahead of it. */
  #open = $state.raw<ReadonlyMap<string, Alert>>(new Map());
  #known = new Map<string, Alert>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Whether the service has told what there is since the socket was opened. */
  isKnown = $state(false);
  #listeners = new Set<(alert: Alert) => void>();

  /** The worst first, then the newest. */
  readonly unresolved = $derived([...this.#open.values()].sort(worstFirst));
  /** Those that nobody has acknowledged. */
  readonly active = $derived(this.unresolved.filter((alert) => alert.status === 'active'));

  /** The worst of each server first. */
  readonly byServer = $derived.by(() => {
    const found = new Map<string, Alert[]>();
    for (const alert of this.unresolved) {
      const others = found.get(alert.server_id);
      if (others) others.push(alert);
      else found.set(alert.server_id, [alert]);
    }
    return found;
  });

  watch(): () => void {
    const watcher = {
      opened: () => {
        // The service sends all unresolved alerts again; an alert that it does not send was resolved in between.
        this.#known = new Map();
        this.#show(OPENING_MS);
      },
      message: (message: Message) => {
        if (message.type === 'alert') this.#told(message.data as Alert);
        else if (message.type === 'alerts') {
          // The servers are others now: the service sends all unresolved alerts again.
          this.#known = new Map();
          this.#show(OPENING_MS);
        }
      },
    };
    // The title of a hidden tab counts them, so this one socket stays.
    const { stop } = live.watch('/ws/alerts', watcher, { whileHidden: true });
    return () => {
      stop();
      clearTimeout(this.#timer);
      this.#timer = undefined;
      this.#open = this.#known = new Map();
      this.isKnown = false;
    };
  }

  of(serverId: string): Alert[] {
    return this.byServer.get(serverId) ?? [];
  }

  /** Calls the listener with each alert that the service sends. */
  onChange(listener: (alert: Alert) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The title of a page, with how much is wrong in front: also a tab that nobody looks at says it. */
  titled(title: string): string {
    return this.active.length ? `(${this.active.length}) ${title}` : title;
  }

  #show(afterMs: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#open = new Map(this.#known);
      this.isKnown = true;
    }, afterMs);
  }

  #told(alert: Alert): void {
    if (alert.status === 'resolved') this.#known.delete(alert.id);
    else this.#known.set(alert.id, alert);
    this.#show(TOGETHER_MS);
    for (const listener of this.#listeners) listener(alert);
  }
}

export const alerts = new LiveAlerts();
