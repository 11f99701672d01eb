// All servers of the caller, as they are now. The list is read from REST, what changes comes over one socket: at most one
// message a second, however many servers there are. Each server is a row of its own, so that a number that changes
// touches what shows that number and nothing else.
import { untrack } from 'svelte';
import { api, take, takeAll, takePage } from '../api/client';
import { failureOf, type Failure } from '../api/failure';
import type { Server, ServerStatus } from '../api/types';
import { clock } from './clock.svelte';
import { Pace } from './freshness';
import { Watched } from './watched.svelte';
import { live, type Message, type Options, type Socket } from './socket.svelte';

/** The newest of a server, as `/ws/fleet` tells it. */
export interface Reading {
  server_id: string;
  status: ServerStatus;
  last_seen_at: string | null;
  /** When it was measured; null when there is no sample yet. */
  timestamp: string | null;
  cpu_percent: number | null;
  memory_percent: number | null;
  disk_percent: number | null;
  load_1: number | null;
  network_in: number | null;
  network_out: number | null;
  uptime_seconds: number | null;
  containers: number | null;
}

/** A connection that is back at once is not spoken of. */
const NOTABLE_MS = 2_500;
/** How long agents take to come back to a service that has just started. */
const SETTLING_MS = 60_000;
/** An answer that takes longer is not waited for. */
const START_MS = 3_000;
/** A server that the list does not have makes it read again, but not more often than this. */
const STRANGER_MS = 5_000;
/** A server of which there is no reading for so long after the socket was opened may be gone. */
const COMPARED_MS = 5_000;

/** A server and its newest reading. */
export class Row {
  server = $state.raw() as Server;
  #reading = new Watched<Reading | null>(null);
  /** For itself, so that what counts and sorts servers does not look at each reading. */
  status = $state() as ServerStatus;
  #pace = new Pace();
  #measuredAt = 0;
  /** When its newest sample was taken, by its own clock, in milliseconds. */
  sampledAt = 0;
  #followers = new Set<() => void>();

  constructor(server: Server) {
    this.server = server;
    this.status = server.status;
  }

  get id(): string {
    return this.server.id;
  }

  get reading(): Reading | null {
    return this.#reading.value;
  }

  get lastSeenAt(): string | null {
    return this.reading?.last_seen_at ?? this.server.last_seen_at ?? null;
  }

  /** How far this server's clock is ahead of the service's. */
  get clockOffsetMs(): number {
    return this.server.agent?.clock_offset_ms ?? 0;
  }

  /** How often it is measured; null until that was seen. */
  get intervalMs(): number | null {
    return this.#pace.intervalMs;
  }

  /** How old its numbers are; null when there are none. */
  age(now: number): number | null {
    return this.reading?.timestamp ? Math.max(0, now - this.#measuredAt) : null;
  }

  /** Whether its numbers are those of the past. */
  isStale(now: number, isLost: boolean): boolean {
    if (this.status !== 'online' || isLost) return true;
    const age = this.age(now);
    return age !== null && age > this.#pace.limitMs;
  }

  /** Takes the newest from the service, whose clock is `skewMs` behind this page's. */
  take(reading: Reading, receivedAt: number, skewMs: number): void {
    const before = this.#reading.value?.timestamp ?? null;
    if (reading.timestamp !== null && reading.timestamp !== before) {
      const at = (this.sampledAt = Date.parse(reading.timestamp));
      this.#pace.add(at);
      // What comes while we listen was measured just now. Only of the first one the age is reckoned, with three clocks.
      this.#measuredAt = before ? receivedAt : Math.min(receivedAt, at - this.clockOffsetMs + skewMs);
    }
    this.#reading.value = reading;
    this.status = reading.status;
    for (const look of this.#followers) look();
  }

  /** Calls with each reading, until what it gives is called. For what follows some of them only. */
  follow(look: () => void): () => void {
    this.#followers.add(look);
    return () => this.#followers.delete(look);
  }

  /** Takes what the list says of it. */
  replace(server: Server): void {
    const { server: before } = this;
    if (!isSame(before, server)) this.server = server;
    // The socket knows better where it has spoken.
    if (!this.reading) this.status = server.status;
  }
}

class Fleet {
  #rows = $state.raw<Map<string, Row>>(new Map());
  /** Whether the list has been read at least once. */
  isKnown = $state(false);
  failure = $state.raw<Failure | null>(null);
  /** When the socket last said something, or was opened: what is shown is at most as old as that. */
  heardAt = $state<number | null>(null);
  /** How often the socket was opened: what the service sent in between is missing unless it sends that again. */
  openings = $state(0);
  #socket = $state.raw<Socket | null>(null);
  /** Readings of servers that the list does not have yet: the socket may be quicker. */
  #strangers = new Map<string, Reading>();
  #strangersAt = -Infinity;
  /** Of which servers there were readings since the socket was opened; null once the list is known to have no others. */
  #heard: Set<string> | null = null;
  #comparison: ReturnType<typeof setTimeout> | undefined;
  #listeners = new Set<(readings: Reading[]) => void>();
  #resets = new Set<() => void>();
  #watchers = 0;
  #stop: (() => void) | null = null;
  #reading: Promise<void> | null = null;
  #isOutdated = false;
  #skewMs = 0;
  /** When the service started, by its own clock; null until that is known. */
  #startedAt = $state<number | null>(null);
  /** The connection is back, and whether that is because the service started is not known yet. */
  #isAskingStart = $state(false);
  #startKnownFor = 0;
  #wasLost = false;

  /** By name. */
  readonly rows = $derived([...this.#rows.values()]);

  /** Whether nothing comes from the service: what is shown may be old. Another socket may have noticed first. */
  readonly isCut = $derived((this.#socket?.lostAt ?? null) !== null || live.lostAt !== null);

  /** The same, for long enough to say so. */
  readonly isLost = $derived.by(() => {
    const lostAt = this.#socket?.lostAt ?? live.lostAt;
    return lostAt !== null && clock.now - lostAt > NOTABLE_MS;
  });

  /** The service has just started, and agents are coming back. */
  readonly isSettling = $derived.by(() => {
    if (this.#isAskingStart) return true;
    return this.#startedAt !== null && clock.now - this.#startedAt < SETTLING_MS;
  });

  /** Whether a server is not connected perhaps only because the service has just started: it has not been here since. */
  isReturning(row: Row): boolean {
    if (row.status !== 'offline' || !this.isSettling) return false;
    const { lastSeenAt } = row;
    return this.#startedAt === null || lastSeenAt === null || Date.parse(lastSeenAt) < this.#startedAt;
  }

  /** Whether the list is kept up to date. */
  get isWatched(): boolean {
    return this.#watchers > 0;
  }

  row(id: string): Row | undefined {
    return this.#rows.get(id);
  }

  /** What the service's clock shows, as far as its messages tell. */
  serviceNow(): number {
    return clock.present() - this.#skewMs;
  }

  /** Watches until what it gives is called. */
  watch(options: Options = {}): () => void {
    this.#watchers += 1;
    if (this.#watchers === 1) {
      this.#open(options);
      void this.load();
    }
    return () => {
      this.#watchers -= 1;
      if (this.#watchers > 0) return;
      clearTimeout(this.#comparison);
      this.#stop?.();
      this.#stop = null;
      this.#socket = null;
    };
  }

  /** Reads the list again. Callers at the same time share one request. */
  load(): Promise<void> {
    // Effects call it: they must not run again because the list is another one then.
    this.#reading ??= untrack(() => this.#load()).finally(() => {
      this.#reading = null;
      if (this.#isOutdated) void this.load();
    });
    return this.#reading;
  }

  /** Calls with each message's readings. */
  onReadings(listener: (readings: Reading[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Calls when everything is forgotten, for as long as the page lives. */
  onReset(listener: () => void): void {
    this.#resets.add(listener);
  }

  /** Forgets everything: somebody else may sign in. */
  reset(): void {
    for (const listener of this.#resets) listener();
    this.#rows = new Map();
    this.#strangers.clear();
    this.#strangersAt = -Infinity;
    this.#heard = null;
    clearTimeout(this.#comparison);
    this.isKnown = false;
    this.failure = null;
    this.heardAt = null;
    this.#startedAt = null;
    this.#startKnownFor = 0;
    // A new socket brings everything again to those that watch already.
    const { options } = untrack(() => this.#socket) ?? {};
    if (!options) return;
    this.#stop?.();
    this.#open(options);
    void this.load();
  }

  #open(options: Options): void {
    const watcher = {
      opened: () => {
        this.heardAt = clock.present();
        this.openings += 1;
        this.#strangers.clear();
        this.#listen();
        // The service that was lost may be another process now.
        if (this.#wasLost) void this.#askStart();
        this.#wasLost = false;
        void this.load();
      },
      closed: () => (this.#wasLost = true),
      message: (message: Message) => this.#told(message),
    };
    const { socket, stop } = live.watch('/ws/fleet', watcher, options);
    this.#socket = socket;
    this.#stop = stop;
  }

  async #load(): Promise<void> {
    this.#isOutdated = false;
    const strangers = [...this.#strangers.keys()];
    try {
      const servers = await takeAll((offset, limit) =>
        takePage(api.GET('/api/v1/servers', { params: { query: { limit, offset } } })),
      );
      const rows = new Map<string, Row>();
      const now = clock.present();
      for (const server of servers) {
        const row = this.#rows.get(server.id) ?? new Row(server);
        row.replace(server);
        const told = this.#strangers.get(server.id);
        if (told) row.take(told, now, this.#skewMs);
        rows.set(server.id, row);
      }
      // A server that had a reading before, and is not in the list, is gone.
      for (const id of [...strangers, ...rows.keys()]) this.#strangers.delete(id);
      this.#rows = rows;
      this.isKnown = true;
      this.failure = null;
      this.#compare();
      if (servers.some(({ status }) => status === 'offline')) void this.#askStart();
    } catch (error) {
      this.failure = failureOf(error);
    }
  }

  #told(message: Message): void {
    const now = clock.present();
    this.heardAt = now;
    if (message.type === 'servers') this.#changed();
    if (message.type !== 'fleet') return;
    const readings = (message.data as { servers: Reading[] }).servers;
    this.#skewMs = skewOf(readings, now) ?? this.#skewMs;
    for (const reading of readings) {
      this.#heard?.add(reading.server_id);
      const row = this.#rows.get(reading.server_id);
      if (row) row.take(reading, now, this.#skewMs);
      else this.#strangers.set(reading.server_id, reading);
    }
    if (readings.some(({ status }) => status === 'offline')) void this.#askStart();
    for (const listener of this.#listeners) listener(readings);
    this.#compare();
  }

  /** Whether a server is away or only not back yet depends on when the service started. Asks once for each connection. */
  async #askStart(): Promise<void> {
    const opening = this.openings;
    if (opening === 0 || this.#startKnownFor === opening) return;
    this.#isAskingStart = this.#wasLost;
    this.#startKnownFor = opening;
    try {
      const { started_at } = await take(api.GET('/api/v1/service', { signal: AbortSignal.timeout(START_MS) }));
      // An older service does not say.
      this.#startedAt = started_at ? Date.parse(started_at) : null;
    } catch {
      this.#startedAt = null;
    }
    if (opening === this.openings) this.#isAskingStart = false;
  }

  /**
   * The list may have been read before the socket was open, and no message reports what changed in between. But the socket begins
   * with readings of all servers, in several messages if there are many.
   */
  #listen(): void {
    this.#heard = new Set();
    clearTimeout(this.#comparison);
    this.#comparison = setTimeout(() => {
      if (this.#heard && this.isKnown) this.#changed();
      this.#heard = null;
    }, COMPARED_MS);
  }

  /** Reads the list again if it lacks servers of which there are readings. */
  #compare(): void {
    if (!this.isKnown) return;
    const now = clock.present();
    if (this.#strangers.size > 0 && now - this.#strangersAt > STRANGER_MS) {
      this.#strangersAt = now;
      this.#changed();
    }
    const [rows, heard] = [this.#rows, this.#heard];
    if (!heard || heard.size < rows.size || this.#strangers.size > 0) return;
    for (const id of rows.keys()) if (!heard.has(id)) return;
    this.#heard = null;
    clearTimeout(this.#comparison);
  }

  /** The list is another one. What is being read now may be the one before. */
  #changed(): void {
    if (this.#reading) this.#isOutdated = true;
    else void this.load();
  }
}

/** Whether a list says the same of a server as one before it: of what it is, of its agent, and of what the caller is for it. */
function isSame(before: Server, server: Server): boolean {
  return (
    before.updated_at === server.updated_at &&
    before.agent?.connected_at === server.agent?.connected_at &&
    before.role === server.role &&
    before.rights?.join() === server.rights?.join() &&
    before.owner?.id === server.owner?.id
  );
}

/** How far the service's clock is behind this page's: a server that is online was seen just now. */
function skewOf(readings: Reading[], now: number): number | null {
  let newest = '';
  for (const { status, last_seen_at: seen } of readings) {
    if (status === 'online' && seen !== null && seen > newest) newest = seen;
  }
  return newest ? now - Date.parse(newest) : null;
}

export const fleet = new Fleet();

/** Every tag that some server has, by name. */
export function tagsOf(rows: Row[]): string[] {
  return [...new Set(rows.flatMap((row) => row.server.tags))].sort();
}
