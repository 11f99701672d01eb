import type { Alert } from '../api/types';
import { live, type Message } from './socket.svelte';

const ORDER = { critical: 0, warning: 1, info: 2 } as const;

/** What a socket tells when it was opened ends with the answer to a ping. An older service gives none: it has ended after so long. */
const OPENING_MS = 5_000;
/** The same while it has said nothing yet, or where it has answered before, and is now an older one, if at all. */
const UNANSWERED_MS = 60_000;
/** Hundreds may come at once: they are shown together. */
const TOGETHER_MS = 50;

/**
 * The worst first, then the newest. Those of the same time stand in the order in which the service made and sends them, wherever the
 * list had them before.
 */
export function worstFirst(a: Alert, b: Alert): number {
  const difference = ORDER[a.severity] - ORDER[b.severity] || b.triggered_at.localeCompare(a.triggered_at);
  return difference || a.id.localeCompare(b.id);
}

/** What is wrong now: the caller's alerts that are not resolved, as they change. Watched while somebody is signed in. */
export class LiveAlerts {
  /** What is shown; what is known may be a moment ahead of it. */
  #open = $state.raw<ReadonlyMap<string, Alert>>(new Map());
  #known = new Map<string, Alert>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** What was open before is still on its way. */
  #isOpening = false;
  #openedAt = 0;
  /** Whether the service has ever answered a ping. */
  #answers = false;
  /** Whether the service has told what there is since the socket was opened. */
  isKnown = $state(false);
  /** Those that were open when the socket was opened, and of which it has said nothing since. */
  #unsure = new Set<string>();
  #listeners = new Set<(alert: Alert) => void>();
  #goneListeners = new Set<(ids: ReadonlySet<string>) => void>();

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
    // The service sends all unresolved alerts again; an alert that it does not send was resolved in between. On a slow line they
    // come over seconds, and what was known before is shown until all are here: none of them would be news otherwise.
    const begin = () => {
      for (const id of this.#known.keys()) this.#unsure.add(id);
      this.#known = new Map();
      this.#isOpening = true;
      this.#openedAt = Date.now();
      this.#waitForEnd();
      socket.ping();
    };
    const watcher = {
      opened: begin,
      closed: () => {
        // What has come is not all there is.
        if (this.#isOpening) this.#stopTimer();
      },
      message: (message: Message) => {
        if (message.type === 'alert') this.#told(message.data as Alert);
        // The servers are others now.
        else if (message.type === 'alerts') begin();
        else if (message.type === 'pong') {
          this.#answers = true;
          if (this.#isOpening) this.#publish();
        }
      },
    };
    // The title of a hidden tab counts them, so this one socket stays.
    const { socket, stop } = live.watch('/ws/alerts', watcher, { whileHidden: true });
    return () => {
      stop();
      this.#stopTimer();
      this.#isOpening = false;
      this.#open = this.#known = new Map();
      this.#unsure.clear();
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

  /** Calls the listener with the alerts that ended while the socket was away: nothing tells more of them. */
  onGone(listener: (ids: ReadonlySet<string>) => void): () => void {
    this.#goneListeners.add(listener);
    return () => this.#goneListeners.delete(listener);
  }

  /** The title of a page, with how much is wrong in front: also a tab that nobody looks at says it. */
  titled(title: string): string {
    return this.active.length ? `(${this.active.length}) ${title}` : title;
  }

  #waitForEnd(): void {
    this.#stopTimer();
    const leftMs = Math.max(0, this.#openedAt + UNANSWERED_MS - Date.now());
    const isPatient = this.#answers || this.#known.size === 0;
    this.#timer = setTimeout(() => this.#publish(), isPatient ? leftMs : Math.min(OPENING_MS, leftMs));
  }

  #publish(): void {
    this.#stopTimer();
    this.#isOpening = false;
    this.#open = new Map(this.#known);
    this.isKnown = true;
    if (this.#unsure.size === 0) return;
    const gone = this.#unsure;
    this.#unsure = new Set();
    for (const listener of this.#goneListeners) listener(gone);
  }

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #told(alert: Alert): void {
    this.#unsure.delete(alert.id);
    if (alert.status === 'resolved') this.#known.delete(alert.id);
    else this.#known.set(alert.id, alert);
    if (this.#isOpening) this.#waitForEnd();
    else this.#timer ??= setTimeout(() => this.#publish(), TOGETHER_MS);
    for (const listener of this.#listeners) listener(alert);
  }
}

export const alerts = new LiveAlerts();
