// Every WebSocket of the interface. A path is opened once however many parts of a page watch it, reconnects on its own with
// jitter, rests while the tab is hidden, and renews its token while it stays open.
import { clock } from './clock.svelte';
import { untrack } from 'svelte';
import { session } from '../session/session.svelte';
import { takeSocket } from '../boot/taken';
import { delay, DETACHED, FORBIDDEN, SERVER_DELETED, UNAUTHORIZED } from './backoff';

export interface Message {
  type: string;
  data: unknown;
}

/** `waiting`: lost, and tried again later. `resting`: closed because nobody looks. `gone`: it will not come back. */
export type SocketState = 'connecting' | 'open' | 'waiting' | 'resting' | 'gone';

export interface Watcher {
  message(message: Message): void;
  /** The socket is open, for the first time or again: what the service sends from now on is new. */
  opened?(): void;
  /** It closed. `code` is the service's reason. */
  closed?(code: number): void;
}

export interface Options {
  /** Stays open while the tab is hidden: for what somebody waits for. */
  whileHidden?: boolean;
  /** Is not opened again when it closes: for what cannot be resumed. */
  once?: boolean;
}

/** A tab that is hidden for longer gives its sockets up. */
const HIDDEN_MS = 60_000;
/** After so long the service is asked for a sign of life. */
const QUIET_MS = 25_000;
/** A connection that says nothing for so long may be half-open, which a page cannot see: it is replaced. */
const SILENCE_MS = 90_000;
/** It is asked so often first: an answer from before this machine slept may be there, and not be heard yet. */
const ASKED_TIMES = 2;
/** A connection that does not open within so long, does not open. */
const OPENING_MS = 15_000;
/** One that takes longer than this is opened once more when somebody asks for it. */
const SLOW_MS = 3_000;
/** What a browser calls an end that nobody announced. */
const LOST = 1006;
/** A connection that held for so long was a good one: its loss starts the backoff from the beginning. */
const STEADY_MS = 5_000;

export class Socket {
  state = $state<SocketState>('connecting');
  /** When it was lost, while it is. */
  lostAt = $state<number | null>(null);

  readonly path: string;
  readonly watchers = new Set<Watcher>();
  readonly options: Options;
  #socket: WebSocket | null = null;
  /** Of the next attempt, or of the end of this one. */
  #timer: ReturnType<typeof setTimeout> | undefined;
  #failures = 0;
  /** On this browser's clock: what the service says of the time moves the other one. */
  #connectedAt = 0;
  #openedAt = 0;
  #heardAt = 0;
  /** How often it was asked for a sign of life since it was heard. */
  #asked = 0;
  /** Whether the service ever gave one when it was asked: an older one does not. */
  #answers = false;
  #attempt = 0;
  readonly #reached: () => void;

  /** `reached` is called when the service was. */
  constructor(path: string, options: Options, reached: () => void) {
    this.path = path;
    this.options = options;
    this.#reached = reached;
    void this.connect();
  }

  /** Opens it now, whatever it waits for. */
  async connect(): Promise<void> {
    clearTimeout(this.#timer);
    this.#drop();
    const attempt = ++this.#attempt;
    this.state = 'connecting';
    this.#connectedAt = Date.now();
    const early = takeSocket(this.path);
    if (early) {
      // Who watches it comes in a moment.
      await Promise.resolve();
      if (attempt !== this.#attempt) return early.socket.close();
      this.#adopt(early.socket);
      if (early.socket.readyState !== WebSocket.OPEN) return;
      this.#opened();
      for (const message of early.messages) this.#message(message);
      return;
    }
    let token: string | null;
    try {
      token = await session.token();
    } catch {
      if (attempt === this.#attempt) this.#later(0);
      return;
    }
    if (attempt !== this.#attempt) return;
    if (!token) return this.#end();
    const address = `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/api/v1${this.path}`;
    this.#adopt(new WebSocket(address, ['bearer', token]));
  }

  #adopt(socket: WebSocket): void {
    this.#socket = socket;
    socket.onopen = () => this.#opened();
    socket.onmessage = (event: MessageEvent<string>) => this.#message(event.data);
    socket.onclose = (event) => void this.#closed(event.code);
    this.#timer = setTimeout(() => this.#lost(), OPENING_MS);
  }

  send(message: unknown): boolean {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(message));
    return true;
  }

  /** Asks for a `pong`, which comes after everything that the service has to say by then. */
  ping(): void {
    this.send({ type: 'ping' });
  }

  /** What waits to be sent, in bytes. */
  get backlog(): number {
    return this.#socket?.bufferedAmount ?? 0;
  }

  /** The tab is seen again, or the network is back. */
  wake(now = Date.now()): void {
    if (this.state === 'resting' || this.state === 'waiting') return void this.connect();
    if (this.options.once) return;
    const isSlow = this.state === 'connecting' && now - this.#connectedAt > SLOW_MS;
    const isSilent = this.state === 'open' && now - this.#heardAt > SILENCE_MS;
    if (isSlow || isSilent) this.#replace();
    else if (this.state === 'open' && now - this.#heardAt > QUIET_MS) this.ping();
  }

  /** The page comes out of the browser's cache, where its connections ended without an event. */
  revive(): void {
    if (!this.options.once) return void this.connect();
    if (this.state === 'open') this.#lost();
  }

  #replace(): void {
    this.lostAt ??= clock.present();
    void this.connect();
  }

  /** Ends a connection that is as good as gone. What was open on it may be come back for. */
  #lost(): void {
    this.#letGo(DETACHED);
    void this.#closed(LOST);
  }

  /**
   * The network is gone: nothing comes any more, though no connection has ended yet. Where that is wrong, as with a service on
   * this machine, it is back at once; what cannot be resumed is left to its connection.
   */
  lose(): void {
    if (this.state === 'open' && !this.options.once) void this.#closed(LOST);
  }

  rest(): void {
    if (this.options.whileHidden || this.options.once || this.state === 'gone') return;
    clearTimeout(this.#timer);
    this.#drop();
    this.state = 'resting';
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#drop();
    this.state = 'gone';
  }

  /** Closes it, and lets the service keep what was open on it. */
  part(): void {
    clearTimeout(this.#timer);
    this.#attempt += 1;
    this.#letGo(DETACHED);
    this.state = 'gone';
  }

  #opened(): void {
    clearTimeout(this.#timer);
    this.state = 'open';
    this.lostAt = null;
    this.#asked = 0;
    this.#openedAt = this.#heardAt = Date.now();
    for (const watcher of this.watchers) watcher.opened?.();
    this.#reached();
  }

  #message(text: string): void {
    this.#heardAt = Date.now();
    this.#asked = 0;
    let message: Message;
    try {
      message = JSON.parse(text) as Message;
    } catch {
      return;
    }
    if (message.type === 'pong') this.#answers = true;
    if (message.type === 'token_expiring') void this.#renew();
    for (const watcher of this.watchers) watcher.message(message);
  }

  async #renew(): Promise<void> {
    // Without a token the service closes the socket, which says the rest.
    const token = await session.renew().catch(() => null);
    if (token) this.send({ type: 'auth', token });
  }

  async #closed(code: number): Promise<void> {
    clearTimeout(this.#timer);
    this.#letGo();
    const held = this.state === 'open' && Date.now() - this.#openedAt > STEADY_MS;
    this.lostAt ??= clock.present();
    const attempt = this.#attempt;
    for (const watcher of [...this.watchers]) watcher.closed?.(code);
    // The last watcher may have left just now.
    if (attempt !== this.#attempt) return;
    if (this.options.once || code === SERVER_DELETED || code === FORBIDDEN) return this.#end();
    if (code === UNAUTHORIZED) {
      const token = await session.renew().catch(() => undefined);
      if (attempt !== this.#attempt) return;
      if (token === null) return this.#end();
    }
    this.#failures = held ? 1 : this.#failures + 1;
    this.#later(code);
  }

  #later(code: number): void {
    this.state = 'waiting';
    this.lostAt ??= clock.present();
    this.#timer = setTimeout(() => void this.connect(), delay(this.#failures, code, Math.random()));
  }

  #end(): void {
    this.#drop();
    this.state = 'gone';
  }

  /** Closes the connection and ignores its events from then on. */
  #drop(): void {
    this.#attempt += 1;
    this.#letGo();
  }

  #letGo(code = 1000): void {
    const socket = this.#socket;
    this.#socket = null;
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close(code);
  }

  /** Called now and then: looks for half-open connections. */
  tend(now: number): void {
    const silence = now - this.#heardAt;
    if (this.state !== 'open' || silence <= QUIET_MS) return;
    if (silence > SILENCE_MS && this.#asked >= ASKED_TIMES) {
      if (!this.options.once) return this.#replace();
      if (this.#answers) return this.#lost();
    }
    this.#asked += 1;
    this.ping();
  }
}

class Live {
  #sockets = $state.raw<Map<string, Socket>>(new Map());
  #hiddenTimer: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    document.addEventListener('visibilitychange', () => this.#visibility());
    window.addEventListener('online', () => this.#each((socket) => socket.wake()));
    window.addEventListener('offline', () => this.#each((socket) => socket.lose()));
    window.addEventListener('pageshow', (event) => event.persisted && this.#each((socket) => socket.revive()));
    // Also while the tab is hidden: those that do not rest then are needed.
    setInterval(() => this.#each((socket) => socket.tend(Date.now())), 15_000);
  }

  /** Watches what a socket says. Call what it gives when you are done: the last one closes the socket. */
  watch(path: string, watcher: Watcher, options: Options = {}): { socket: Socket; stop: () => void } {
    // Called in effects, which must not depend on what they change here.
    return untrack(() => this.#watch(path, watcher, options));
  }

  #watch(path: string, watcher: Watcher, options: Options): { socket: Socket; stop: () => void } {
    let socket = this.#sockets.get(path);
    if (!socket || socket.state === 'gone') {
      socket = new Socket(path, options, () => this.#reached());
      this.#sockets = new Map(this.#sockets).set(path, socket);
    } else if (socket.state === 'open') {
      const found = socket;
      queueMicrotask(() => found.watchers.has(watcher) && watcher.opened?.());
    }
    socket.watchers.add(watcher);
    const watched = socket;
    return { socket: watched, stop: () => untrack(() => this.#leave(watched, watcher)) };
  }

  /** How long the longest loss has lasted, as a time; null while everything is there. */
  get lostAt(): number | null {
    const lost = [...this.#sockets.values()].filter(
      (socket) => socket.state === 'waiting' || socket.state === 'connecting',
    );
    return lost.reduce<number | null>((least, socket) => {
      if (socket.lostAt === null) return least;
      return least === null ? socket.lostAt : Math.min(least, socket.lostAt);
    }, null);
  }

  /** The service is back for one: the others that wait need not wait longer. A little, so that they do not come at once. */
  #reached(): void {
    for (const socket of this.#sockets.values()) {
      if (socket.state === 'waiting')
        setTimeout(() => socket.state === 'waiting' && socket.wake(), Math.random() * 1_000);
    }
  }

  /** Opens what is lost now. */
  retry(): void {
    this.#each((socket) => socket.wake());
  }

  /** Closes everything: nobody is signed in any more. */
  reset(): void {
    this.#each((socket) => socket.close());
    this.#sockets = new Map();
  }

  #leave(socket: Socket, watcher: Watcher): void {
    socket.watchers.delete(watcher);
    if (socket.watchers.size > 0) return;
    socket.close();
    if (this.#sockets.get(socket.path) !== socket) return;
    const left = new Map(this.#sockets);
    left.delete(socket.path);
    this.#sockets = left;
  }

  #visibility(): void {
    clearTimeout(this.#hiddenTimer);
    if (!document.hidden) return this.#each((socket) => socket.wake());
    this.#hiddenTimer = setTimeout(() => this.#each((socket) => socket.rest()), HIDDEN_MS);
  }

  #each(act: (socket: Socket) => void): void {
    for (const socket of this.#sockets.values()) act(socket);
  }
}

export const live = new Live();
