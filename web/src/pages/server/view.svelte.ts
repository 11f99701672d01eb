// One server as its page sees it. All tabs share it, so that there is one socket whatever is shown.
import { api, take } from '../../api/client';
import type { Alert, Server, ServerStatus, Snapshot } from '../../api/types';
import { failureOf } from '../../api/failure';
import { allows, refusal, type Action } from '../../lib/access';
import { delay, SERVER_DELETED } from '../../live/backoff';
import { clock } from '../../live/clock.svelte';
import { alerts } from '../../live/alerts.svelte';
import { live, type Message, type Options, type Socket } from '../../live/socket.svelte';

/** What the agent may be allowed to do. `metrics` always is. */
export type Capability =
  | 'metrics'
  | 'processes'
  | 'docker'
  | 'docker_control'
  | 'commands'
  | 'logs'
  | 'terminal'
  | (string & Record<never, never>);

/** Something that happened on the machine. The fields beside `kind` depend on it. */
export interface ServerEvent {
  kind: string;
  /** When this page received it, in milliseconds. */
  at: number;
  [field: string]: unknown;
}

/** So many events are kept, the newest last. */
const EVENTS_KEPT = 200;

/** A reading is old when three were missed, and never before this. */
const STALE_MS = 30_000;

export class ServerView {
  readonly id: string;
  server = $state.raw() as Server;
  /** As the socket tells it, which is sooner than `server` does. */
  status = $state<ServerStatus>('pending');
  /** The newest snapshot; null until there is one. */
  latest = $state.raw<Snapshot | null>(null);
  /** The one before it, which counters are compared with; null until two arrived. */
  previous = $state.raw<Snapshot | null>(null);
  /** What happened since the page was opened, the newest last. */
  events = $state.raw<ServerEvent[]>([]);
  /** It was deleted while it was shown, or is not shared with the caller any more. */
  isDeleted = $state(false);
  /** When the newest snapshot was measured, on this browser's clock. */
  measuredAt = $state<number | null>(null);
  /** Milliseconds between the last two samples; null until there were two. */
  intervalMs = $state<number | null>(null);

  #asked = 0;
  #reading = 0;
  #isWatched = false;
  #again: ReturnType<typeof setTimeout> | undefined;
  #socket = $state.raw<Socket | null>(null);
  #listeners = new Set<(sample: Snapshot) => void>();

  constructor(server: Server) {
    this.id = server.id;
    this.server = server;
    this.status = server.status;
  }

  /** Whether what is shown is not the present any more: the agent or the connection is away, or samples do not come. */
  readonly isStale = $derived.by(() => {
    if (this.status !== 'online') return true;
    if (this.measuredAt === null) return false;
    // An attempt to come back may take long too.
    if (clock.now - (this.#socket?.lostAt ?? clock.now) > 3_000) return true;
    return clock.now - this.measuredAt > Math.max(STALE_MS, 3 * (this.intervalMs ?? 0));
  });

  /** When the server was last heard of. */
  readonly lastSeenAt = $derived.by(() => {
    const told = this.server.last_seen_at ? Date.parse(this.server.last_seen_at) : null;
    if (this.measuredAt === null) return told;
    return told === null ? this.measuredAt : Math.max(told, this.measuredAt);
  });

  /** Whether the agent, as it last connected, allows it. */
  can(capability: Capability): boolean {
    return this.server.agent?.capabilities.includes(capability) ?? false;
  }

  /** Why the caller may not do this here, and whom to ask; null where they may. */
  refusal(action: Action): string | null {
    return refusal(this.server, action);
  }

  may(action: Action): boolean {
    return allows(this.server, action);
  }

  /** What is wrong there now, the worst first. */
  get openAlerts(): Alert[] {
    return alerts.of(this.id);
  }

  /** Whether it belongs to somebody else, who may take away at any moment what the caller may do. */
  get isShared(): boolean {
    return this.server.role !== 'owner';
  }

  /** Shows it as a change has left it. Whether what is on its way is older or newer, nobody knows: it is asked for once more. */
  take(server: Server): void {
    this.#asked += 1;
    this.server = server;
    if (this.#reading > 0) void this.#reload();
  }

  /** Reads the server again, for somebody who waits until its agent allows something. */
  lookAgain(): void {
    if (this.#reading === 0) void this.#reload();
  }

  /**
   * Reads the server again: after its agent connected, or what the caller sees has changed, and so perhaps what they may do here.
   * Nobody says that twice, so it is asked until there is an answer.
   */
  async #reload(failures = 1): Promise<void> {
    clearTimeout(this.#again);
    const asked = ++this.#asked;
    this.#reading += 1;
    try {
      const server = await take(api.GET('/api/v1/servers/{id}', { params: { path: { id: this.id } } }));
      // Of several questions the last one has the newest answer, whichever comes first.
      if (asked === this.#asked) this.server = server;
    } catch (error) {
      const { status, isPassing } = failureOf(error);
      if (status === 404) this.isDeleted = true;
      if (!isPassing || !this.#isWatched) return;
      clearTimeout(this.#again);
      this.#again = setTimeout(() => void this.#reload(failures + 1), delay(failures, 0, Math.random()));
    } finally {
      this.#reading -= 1;
    }
  }

  /** Calls with each sample as it arrives. Call what it gives when you are done. */
  onSample(listener: (sample: Snapshot) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Watches until what it gives is called. The page does it once, for all tabs. */
  watch(options: Options = {}): () => void {
    const watcher = {
      message: (message: Message) => this.#told(message),
      closed: (code: number) => (this.isDeleted ||= code === SERVER_DELETED),
    };
    const { socket, stop } = live.watch(`/ws/metrics/${this.id}`, watcher, options);
    this.#socket = socket;
    this.#isWatched = true;
    const left = () => {
      this.#isWatched = false;
      clearTimeout(this.#again);
      stop();
    };
    if (!this.isShared) return left;
    // What changed since the server was read, and while no socket was open, came to nobody: the first message is after it.
    let isUnsure = true;
    const told = (message: Message) => {
      if (message.type === 'servers' || isUnsure) void this.#reload();
      isUnsure = false;
    };
    const fleet = live.watch('/ws/fleet', { opened: () => (isUnsure = true), message: told });
    return () => {
      left();
      fleet.stop();
    };
  }

  #told(message: Message): void {
    if (message.type === 'metrics') this.#sampled(message.data as Snapshot);
    else if (message.type === 'status') this.#turned((message.data as { status: ServerStatus }).status);
    else if (message.type === 'event') {
      const event = { ...(message.data as { kind: string }), at: clock.present() };
      this.events = [...this.events.slice(1 - EVENTS_KEPT), event];
    }
  }

  #sampled(sample: Snapshot): void {
    const before = this.latest;
    // After a reconnect the service sends the latest one again.
    if (before && before.timestamp === sample.timestamp) return;
    const at = Date.parse(sample.timestamp);
    const gap = before ? at - Date.parse(before.timestamp) : 0;
    if (gap > 0) this.intervalMs = this.intervalMs === null ? gap : Math.min(gap, this.intervalMs * 2);
    // The machine's clock may be off; what arrives now was measured by now.
    const offset = this.server.agent?.clock_offset_ms ?? 0;
    this.measuredAt = Math.min(at - offset, clock.present());
    this.previous = before;
    this.latest = sample;
    for (const listener of this.#listeners) listener(sample);
  }

  #turned(status: ServerStatus): void {
    const before = this.status;
    this.status = status;
    if (status === before) return;
    const event = { kind: 'status', status, at: clock.present() };
    this.events = [...this.events.slice(1 - EVENTS_KEPT), event];
    // The agent that has come may be another version, with another policy.
    void this.#reload();
  }
}
