// A log as it is written, over the service's socket, into a `Log`, or into what mixes several. A connection that comes back tells the last lines once
// more: those that are there already are left out, and a mark says where it was lost.
import * as m from '#messages/liveLog';
import { api, take } from '../../../api/client';
import { failureOf } from '../../../api/failure';
import { duration } from '../../../lib/format';
import { FORBIDDEN, SERVER_DELETED } from '../../../live/backoff';
import { live, type Message } from '../../../live/socket.svelte';
import { lineOf, Lines, note, Repetition, type Line, type ToldLine } from '../../../ui/log/lines';
import { parameters, socketPath, type Problem, type Source } from './source';

/** `away`: the agent is; its lines come when it is back. `over`: nothing more comes until somebody tries again. */
export type FeedState = 'connecting' | 'live' | 'lost' | 'away' | 'over';

/** After a reconnect: how long a line without a time, which may be an old one or a new one of the same text, waits for the next. */
const REST_MS = 5_000;
/** A log that is opened again after a refusal: an agent that refuses it once more says so within this time. */
const REFUSAL_MS = 2_000;

/** What takes the lines. */
export interface Sink {
  push(lines: readonly Line[]): void;
}

export class Feed {
  state = $state<FeedState>('connecting');
  /** Why it is over. Opened again, it keeps the reason until lines come, or no refusal did. */
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
  #backAt = 0;
  /** After a reconnect, until it is clear which lines are new. */
  #again: Repetition | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Of the wait for the same refusal. */
  #answering: ReturnType<typeof setTimeout> | undefined;

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
    this.#stop = live.watch(socketPath(this.#serverId, this.#source, this.#tail), {
      opened: () => this.#opened(),
      message: (message) => this.#told(message),
      closed: (code) => this.#closed(code),
    }).stop;
  }

  close(): void {
    clearTimeout(this.#answering);
    this.#forget();
    this.#stop();
    this.#stop = () => undefined;
  }

  #opened(): void {
    this.state = this.problem ? 'connecting' : 'live';
    clearTimeout(this.#answering);
    if (this.problem) this.#answering = setTimeout(() => this.#allowed(), REFUSAL_MS);
    if (this.#wasOpen) {
      this.#again = new Repetition([...this.#recent.between(this.#recent.first, this.#recent.end)]);
      this.#backAt = Date.now();
    }
    this.#wasOpen = true;
  }

  /** What was refused before is allowed now. */
  #allowed(): void {
    clearTimeout(this.#answering);
    this.problem = null;
    this.state = 'live';
  }

  #told(message: Message): void {
    if (message.type === 'log') {
      this.#allowed();
      const line = lineOf(message.data as ToldLine);
      if (!this.#again) return this.#take([line]);
      clearTimeout(this.#timer);
      this.#again.push(line);
      // However slowly they come: as long as they are the old ones, the rest of those is still to come.
      if (this.#again.isOver) this.#settle();
      else if (line.at === null) this.#timer = setTimeout(() => this.#settle(), REST_MS);
    } else if (message.type === 'dropped') {
      this.#settle();
      const { count } = message.data as { count: number };
      this.dropped += count;
      this.#sink.push([note('dropped', m.droppedHere({ count }))]);
    } else if (message.type === 'error') {
      clearTimeout(this.#answering);
      const problem = message.data as Problem;
      // Its lines, or another refusal, come when the agent is back.
      if (problem.code === 'agent_offline') this.problem = null;
      // The last lines come once more when the agent is back: only they tell whether something is missing.
      if (problem.code === 'agent_offline' && this.#again?.coming.length === 0) return void (this.state = 'away');
      this.#settle();
      this.#failed(problem);
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
    clearTimeout(this.#answering);
    this.#forget();
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

  /** Of what came after a reconnect, what is new is put behind what was there. */
  #settle(): void {
    const again = this.#again;
    if (!again) return;
    const lasted = this.#lostAt === null ? null : { duration: duration(this.#backAt - this.#lostAt) };
    const { known } = again;
    const plain = known > 0 ? m.lostNothing : m.lostSome;
    const timed = known > 0 ? m.lostNothingFor : m.lostSomeFor;
    this.#forget();
    this.#lostAt = null;
    if (known === 0) this.gaps += 1;
    this.#sink.push([note('lost', lasted ? timed(lasted) : plain())]);
    this.#take(again.coming.slice(known));
  }

  /** What came so far comes once more with the next connection. */
  #forget(): void {
    clearTimeout(this.#timer);
    this.#again = null;
  }

  #take(lines: Line[]): void {
    for (const line of lines) this.#recent.push(line);
    this.#sink.push(lines);
  }
}
