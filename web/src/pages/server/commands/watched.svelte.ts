// One command that a page shows: how it stands and what it wrote, as it comes. What has ended comes the same way, so
// that its output has its streams and its marks too.
import { clock } from '../../../live/clock.svelte';
import { untrack } from 'svelte';
import { api, take } from '../../../api/client';
import { failureOf, type Failure } from '../../../api/failure';
import type { CommandError, CommandStatus, CommandSummary } from '../../../api/types';
import { live, type Message } from '../../../live/socket.svelte';
import { NOTHING, OutputLog, type Shown, type Stream } from './output';
import { isUnderWay } from './status';

/** Often enough to look immediate, seldom enough for a command that writes megabytes. */
const PAINT_MS = 60;

interface Ended {
  status: CommandStatus;
  exit_code: number | null;
  duration_ms: number | null;
  truncated: boolean;
  error: CommandError | null;
}

export class WatchedCommand {
  readonly serverId: string;
  readonly id: string;
  /** Null until it was read. */
  told = $state.raw<CommandSummary | null>(null);
  failure = $state.raw<Failure | null>(null);
  shown = $state.raw<Shown>(NOTHING);
  /** Whether everything was shown that there is. */
  isWhole = $state(false);

  #toldAt = $state(0);
  #log = new OutputLog();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #stop: (() => void) | null = null;
  #isLeft = false;
  #isReading = false;
  readonly #ended: ((watched: WatchedCommand) => void) | undefined;

  /** `ended` is called when the command ends while somebody watches it. */
  constructor(serverId: string, id: string, known?: CommandSummary, ended?: (watched: WatchedCommand) => void) {
    this.serverId = serverId;
    this.id = id;
    this.#ended = ended;
    if (known) this.#tell(known);
  }

  get isUnderWay(): boolean {
    return this.told !== null && isUnderWay(this.told.status);
  }

  /** How long it took, or takes so far. Reckoned from what the service told, whatever this machine's clock says. */
  durationMs(now: number): number | null {
    if (!this.told) return null;
    if (this.told.status !== 'running') return this.told.started_at ? this.told.duration_ms : null;
    return this.told.duration_ms + Math.max(0, now - this.#toldAt);
  }

  /** Watches until what it gives is called. */
  watch(): () => void {
    this.#isLeft = false;
    // Its own changes must not make the effect that watches run again.
    untrack(() => void this.load());
    return () => {
      this.#isLeft = true;
      this.#leave();
      clearTimeout(this.#timer);
      this.#timer = undefined;
    };
  }

  /** Reads how it stands, unless that is known, and then listens. A failure stays until there is an answer. */
  async load(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      if (!this.told) this.#tell(await this.#read());
      this.failure = null;
    } catch (error) {
      this.failure = failureOf(error);
      return;
    } finally {
      this.#isReading = false;
    }
    if (this.#isLeft || this.#stop) return;
    const watcher = { message: (message: Message) => this.#message(message) };
    this.#stop = live.watch(`/ws/commands/${this.serverId}/${this.id}`, watcher).stop;
  }

  /** Ends it, and all that it started. */
  async cancel(): Promise<void> {
    const path = { server_id: this.serverId, command_id: this.id };
    const command = await take(api.POST('/api/v1/commands/{server_id}/{command_id}/cancel', { params: { path } }));
    if (this.isUnderWay) this.#tell(command);
  }

  #read(): Promise<CommandSummary> {
    const path = { server_id: this.serverId, command_id: this.id };
    return take(api.GET('/api/v1/commands/{server_id}/{command_id}', { params: { path } }));
  }

  #tell(command: CommandSummary): void {
    this.told = command;
    this.#toldAt = clock.present();
  }

  #message({ type, data }: Message): void {
    if (type === 'output') {
      const piece = data as { stream?: Stream; data: string; offset?: number };
      this.#log.add(piece.stream ?? 'stdout', piece.data, piece.offset);
      this.#later();
    } else if (type === 'result') {
      this.#leave();
      this.#show();
      this.#end(data as Ended);
    }
  }

  #end(ended: Ended): void {
    const wasUnderWay = this.isUnderWay;
    const { status, exit_code, truncated, error } = ended;
    if (this.told) {
      const duration_ms = ended.duration_ms ?? 0;
      this.#tell({ ...this.told, status, exit_code, duration_ms, error, truncated: truncated || this.told.truncated });
    }
    this.isWhole = true;
    if (wasUnderWay) this.#ended?.(this);
  }

  /** Painted now and then, however many pieces come. */
  #later(): void {
    this.#timer ??= setTimeout(() => this.#show(), PAINT_MS);
  }

  #show(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.shown = this.#log.show();
  }

  #leave(): void {
    this.#stop?.();
    this.#stop = null;
  }
}
