// A terminal's way to the service. When it breaks, the service keeps the terminal for a while: this comes back to it by
// itself, and says how many bytes of output are there already.
import { FORBIDDEN, SERVER_DELETED, delay } from '../../../live/backoff';
import { live, type Message, type Socket } from '../../../live/socket.svelte';
import { proofFor } from '../../../api/client';
import { dropTicket, keepTicket, type Ticket } from '../../../session/tickets';

/** The longest pause between two attempts: there are two minutes in all. */
const LONGEST_PAUSE_MS = 5_000;
/** Errors after which the terminal may still be there. If it is not, the next attempt says so. */
const PASSING = new Set(['agent_disconnected', 'agent_offline', 'agent_timeout', 'busy', 'terminal_detached']);
/** What the tab remembers is at most so old. */
const REMEMBER_EVERY_MS = 5_000;
/** For how long a terminal is kept, until the service says it. */
const KEPT_SECONDS = 120;

export type Loss = 'taken' | 'lost' | 'late' | 'notProved';

interface Events {
  /** It can be typed into, from now on or again. */
  open(): void;
  /** It waits until this time. */
  waits(until: number): void;
  /** There is no way back. */
  gone(why: Loss): void;
  message(message: Message): void;
}

export class Line {
  readonly #serverId: string;
  readonly #size: () => { cols: number; rows: number };
  readonly #events: Events;
  #socket: Socket | null = null;
  #stop: (() => void) | null = null;
  #ticket: Ticket | null = null;
  #bytes = 0;
  #keptMs = KEPT_SECONDS * 1_000;
  /** When it breaks for good; null while nothing is broken. */
  #until: number | null = null;
  #failures = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #remembering: ReturnType<typeof setInterval> | undefined;
  #isOver = false;
  #hasProved = false;

  constructor(serverId: string, size: () => { cols: number; rows: number }, events: Events) {
    this.#serverId = serverId;
    this.#size = size;
    this.#events = events;
  }

  /** Opens a terminal, with what was signed for it. */
  open(signed: string | null): void {
    this.#listen();
    this.#dial(`keep=true${signed === null ? '' : `&signed=${signed}`}`);
  }

  /** Resumes a terminal whose output is not there any more. */
  resume(ticket: Ticket): void {
    this.#ticket = ticket;
    this.#until = ticket.until;
    this.#listen();
    this.#redial();
  }

  send(message: unknown): boolean {
    return this.#socket?.send(message) ?? false;
  }

  get backlog(): number {
    return this.#socket?.backlog ?? 0;
  }

  /** Ends the terminal. */
  close(): void {
    if (!this.#isOver) dropTicket(this.#serverId);
    this.#isOver = true;
    clearTimeout(this.#timer);
    clearInterval(this.#remembering);
    window.removeEventListener('pagehide', this.#remember);
    window.removeEventListener('offline', this.#offline);
    window.removeEventListener('online', this.#online);
    this.#stop?.();
    this.#stop = this.#socket = null;
  }

  #listen(): void {
    this.#remembering = setInterval(this.#remember, REMEMBER_EVERY_MS);
    window.addEventListener('pagehide', this.#remember);
    window.addEventListener('offline', this.#offline);
    window.addEventListener('online', this.#online);
  }

  readonly #remember = () => {
    if (this.#ticket === null) return;
    this.#ticket.bytes = Math.max(this.#ticket.bytes, this.#bytes);
    this.#ticket.until = this.#until ?? Date.now() + this.#keptMs;
    keepTicket(this.#serverId, this.#ticket);
  };

  // A connection without a network looks open for minutes.
  readonly #offline = () => {
    if (this.#ticket === null || this.#until !== null) return;
    this.#socket?.part();
    this.#lose(0);
  };

  readonly #online = () => {
    // An attempt from before may hang.
    const isDown = this.#socket === null || this.#socket.state === 'connecting';
    if (this.#until !== null && isDown) this.#redial();
  };

  #redial(): void {
    clearTimeout(this.#timer);
    this.#dial('resume=true');
  }

  #dial(query: string): void {
    if (this.#isOver) return;
    this.#stop?.();
    const { cols, rows } = this.#size();
    const path = `/ws/terminal/${this.#serverId}?columns=${cols}&rows=${rows}&${query}`;
    let wasOpen = false;
    const watcher = {
      opened: () => {
        wasOpen = true;
        this.#opened();
      },
      message: (message: Message) => this.#message(message),
      closed: (code: number) => this.#closed(code, wasOpen ? null : path, query),
    };
    const { socket, stop } = live.watch(path, watcher, { once: true });
    this.#socket = socket;
    this.#stop = stop;
  }

  #opened(): void {
    if (this.#ticket === null) return this.#events.open();
    const { terminalId, secret } = this.#ticket;
    this.send({ type: 'resume', data: { terminal_id: terminalId, secret, offset: this.#bytes } });
  }

  #message(message: Message): void {
    if (this.#isOver) return;
    if (message.type === 'kept')
      return this.#kept(message.data as { terminal_id: string; secret: string; seconds: number });
    if (message.type === 'output') this.#count(message.data as { data: string; offset?: number });
    const isError = message.type === 'error';
    // The service closes the socket after it.
    if (isError && this.#ticket !== null && PASSING.has((message.data as { code: string }).code)) return;
    if (isError || message.type === 'exit') this.close();
    this.#events.message(message);
  }

  #kept({ terminal_id: terminalId, secret, seconds }: { terminal_id: string; secret: string; seconds: number }): void {
    this.#ticket = { terminalId, secret, bytes: this.#ticket?.bytes ?? 0, until: 0 };
    this.#keptMs = seconds * 1_000;
    this.#until = null;
    this.#failures = 0;
    this.#hasProved = false;
    this.#remember();
    this.#events.open();
  }

  #count({ data, offset }: { data: string; offset?: number }): void {
    if (offset !== undefined) this.#bytes = offset + new TextEncoder().encode(data).length;
  }

  /** `refused` is the path of a socket that was never open. */
  #closed(code: number, refused: string | null, query: string): void {
    if (this.#isOver) return;
    if (code === FORBIDDEN || code === SERVER_DELETED) return this.#end('taken');
    if (refused !== null && !this.#hasProved) {
      // A browser does not say why a socket was refused. Perhaps the service wants to know first who asks.
      const socket = this.#socket;
      void proofFor(refused)
        .catch(() => 'unasked' as const)
        .then((proof) => {
          if (socket !== this.#socket) return;
          if (proof === 'refused') return this.#end('notProved');
          if (proof === 'unasked') return this.#lose(code);
          this.#hasProved = true;
          this.#dial(query);
        });
      return;
    }
    this.#lose(code);
  }

  #lose(code: number): void {
    if (this.#isOver) return;
    if (this.#ticket === null) return this.#end('lost');
    this.#stop?.();
    this.#stop = this.#socket = null;
    const now = Date.now();
    this.#until ??= now + this.#keptMs;
    if (now >= this.#until) return this.#end('late');
    this.#events.waits(this.#until);
    this.#failures += 1;
    const pause = Math.min(delay(this.#failures, code, Math.random()), LONGEST_PAUSE_MS, this.#until - now);
    this.#timer = setTimeout(() => this.#redial(), pause);
  }

  #end(why: Loss): void {
    this.close();
    this.#events.gone(why);
  }
}
