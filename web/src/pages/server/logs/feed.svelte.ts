// A log as it is written, over the service's socket, into a `Log`, or into what mixes several. A connection that comes back tells the last lines once
// more: those that are there already are left out, and a mark says where it was lost.
import * as m from '#messages/liveLog';
import { api, take } from '../../../api/client';
import { failureOf } from '../../../api/failure';
import { duration } from '../../../lib/format';
import { FORBIDDEN, SERVER_DELETED } from '../../../live/backoff';
import { live, type Message } from '../../../live/socket.svelte';
import { lineOf, Lines, note, overlap, type Line, type ToldLine } from '../../../ui/log/lines';
import { parameters, socketPath, type Problem, type Source } from './source';

/** `away`: the agent is; its lines come when it is back. `over`: nothing more comes until somebody tries again. */
export type FeedState = 'connecting' | 'live' | 'lost' | 'away' | 'over';

/** After a reconnect: lines that come later than this are new ones. */
const SETTLE_MS = 500;

/** What takes the lines. */
export interface Sink {
  push(lines: readonly Line[]): void;
}

export class Feed {
  state = $state<FeedState>('connecting');
  /** Why it is over. */
  problem = $state.raw<Problem | null>(null);
  /** Lines that did not come, and how often some may be missing. */
  dropped = $state(0);
  gaps = $state(0);

  readonly #serverId: string;
  readonly #source: Source;
  readonly #tail: number;
  readonly #sink: Sink;
  /** The last lines told, to know them again. */
  readonly #recent: Lines;
  #stop: () => void = () => undefined;
  #wasOpen = false;
  #lostAt: number | null = null;
  #coming: Line[] | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(serverId: string, source: Source, tail: number, sink: Sink) {
    this.#serverId = serverId;
    this.#source = source;
    this.#tail = tail;
    this.#sink = sink;
    this.#recent = new Lines(tail);
  }

  start(): void {
    this.close();
    this.state = 'connecting';
    this.problem = null;
    this.#stop = live.watch(socketPath(this.#serverId, this.#source, this.#tail), {
      opened: () => this.#opened(),
      message: (message) => this.#told(message),
      closed: (code) => this.#closed(code),
    }).stop;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#settle();
    this.#stop();
    this.#stop = () => undefined;
  }

  #opened(): void {
    this.state = 'live';
    if (this.#wasOpen) {
      this.#coming = [];
      this.#timer = setTimeout(() => this.#settle(), SETTLE_MS);
    }
    this.#wasOpen = true;
  }

  #told(message: Message): void {
    if (message.type === 'log') {
      this.state = 'live';
      const line = lineOf(message.data as ToldLine);
      if (!this.#coming) return this.#take([line]);
      this.#coming.push(line);
      if (this.#coming.length >= this.#tail) this.#settle();
    } else if (message.type === 'dropped') {
      this.#settle();
      const { count } = message.data as { count: number };
      this.dropped += count;
      this.#sink.push([note('dropped', m.droppedHere({ count }))]);
    } else if (message.type === 'error') {
      this.#settle();
      this.#failed(message.data as Problem);
    }
  }

  #failed(problem: Problem): void {
    if (problem.code === 'agent_offline') {
      this.state = 'away';
      this.gaps += 1;
      this.#sink.push([note('lost', m.wentOffline())]);
      return;
    }
    if (this.#recent.count > 0) this.#sink.push([note('note', m.endedHere({ reason: problem.detail }))]);
    this.#end(problem);
  }

  #end(problem: Problem): void {
    this.problem = problem;
    this.state = 'over';
    // The socket is in the middle of telling its watchers.
    queueMicrotask(() => this.#stop());
  }

  #closed(code: number): void {
    if (this.state === 'over') return;
    this.#settle();
    if (code === FORBIDDEN || code === SERVER_DELETED) return this.#failed({ code: 'forbidden', detail: m.taken() });
    this.#lostAt ??= Date.now();
    this.state = 'lost';
    // A socket that never opens does not say why; the same question over REST does.
    if (!this.#wasOpen) void this.#ask();
  }

  async #ask(): Promise<void> {
    const path = { server_id: this.#serverId };
    const query = { ...parameters(this.#source), tail: 1 };
    try {
      await take(api.GET('/api/v1/logs/{server_id}', { params: { path, query } }));
    } catch (error) {
      const failure = failureOf(error);
      if (this.#wasOpen || failure.isPassing || failure.code === 'agent_offline' || failure.status === 401) return;
      const fault = failure.faults[0];
      this.#end({ code: failure.code, detail: fault ? fault.msg : failure.message });
    }
  }

  /** What came after a reconnect is put behind what was there. */
  #settle(): void {
    clearTimeout(this.#timer);
    const coming = this.#coming;
    this.#coming = null;
    if (!coming) return;
    const held = [...this.#recent.between(this.#recent.first, this.#recent.end)];
    const known = overlap(held, coming);
    const lasted = this.#lostAt === null ? null : { duration: duration(Date.now() - this.#lostAt) };
    const plain = known > 0 ? m.lostNothing : m.lostSome;
    const timed = known > 0 ? m.lostNothingFor : m.lostSomeFor;
    this.#lostAt = null;
    if (known === 0) this.gaps += 1;
    this.#sink.push([note('lost', lasted ? timed(lasted) : plain())]);
    this.#take(coming.slice(known));
  }

  #take(lines: Line[]): void {
    for (const line of lines) this.#recent.push(line);
    this.#sink.push(lines);
  }
}
