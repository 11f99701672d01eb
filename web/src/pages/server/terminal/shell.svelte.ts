// One terminal: what is typed goes to the server, what comes is drawn.
import * as m from '#messages/terminal';
import { untrack } from 'svelte';
import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';
import '@xterm/xterm/css/xterm.css';
import { FORBIDDEN, SERVER_DELETED } from '../../../live/backoff';
import { live, type Message, type Socket } from '../../../live/socket.svelte';
import { proofFor } from '../../../api/client';
import { sentence } from '../../../api/failure';
import { reasonOf, type Reason } from '../../../signing/refusals';
import { boundRepeats } from './bounds';
import { Intake, Typing } from './flow';
import { sent, withControl, type ScreenKey } from './keys';

/** Lines that can be scrolled back to. */
const SCROLLBACK = 10_000;

export type ShellState = 'connecting' | 'open' | 'ended';

export class Shell {
  state = $state<ShellState>('connecting');
  /** Why it is not there any more. */
  reason = $state('');
  /** Why what was signed for it did not suffice, where that was the reason. */
  refusal = $state<Reason | null>(null);
  /** The next character is typed with Ctrl. */
  control = $state(false);
  hasSelection = $state(false);
  readonly terminal: Terminal;

  readonly #fit = new FitAddon();
  #socket: Socket | null = null;
  #stop: (() => void) | null = null;
  readonly #intake: Intake;
  readonly #typing: Typing;
  readonly #leave: () => void;

  /** `leave` is called when somebody wants the focus to go elsewhere. */
  constructor(options: { fontSize: number; screenReaderMode: boolean; leave: () => void }) {
    this.#leave = options.leave;
    this.terminal = new Terminal({
      fontSize: options.fontSize,
      screenReaderMode: options.screenReaderMode,
      fontFamily: getComputedStyle(document.documentElement).getPropertyValue('--mono'),
      scrollback: SCROLLBACK,
      cursorBlink: true,
      minimumContrastRatio: 4.5,
      macOptionIsMeta: true,
    });
    boundRepeats(this.terminal);
    this.terminal.loadAddon(this.#fit);
    this.terminal.attachCustomKeyEventHandler((event) => this.#key(event));
    this.terminal.onData((text) => this.type(text));
    this.terminal.onBinary((text) => this.type(text));
    this.terminal.onSelectionChange(() => (this.hasSelection = this.terminal.hasSelection()));
    this.terminal.onResize(({ cols, rows }) => {
      if (this.state === 'open') this.#socket?.send({ type: 'resize', data: { columns: cols, rows } });
    });
    this.#intake = new Intake((text, done) => this.terminal.write(text, done));
    const socket = () => this.#socket;
    this.#typing = new Typing({
      send: (data) => socket()?.send({ type: 'input', data: { data } }) ?? false,
      get backlog() {
        return socket()?.backlog ?? 0;
      },
    });
  }

  /** Opens it on a server, in an element, with what was signed for it. Call what it gives when you are done. */
  open(serverId: string, element: HTMLElement, signed: string | null): () => void {
    this.terminal.open(element);
    this.fit();
    const { cols, rows } = this.terminal;
    const path = `/ws/terminal/${serverId}?columns=${cols}&rows=${rows}${signed === null ? '' : `&signed=${signed}`}`;
    let isLeft = false;
    let hasProved = false;
    const connect = () => {
      if (isLeft) return;
      this.#stop?.();
      const { socket, stop } = live.watch(path, watcher, { once: true });
      this.#socket = socket;
      this.#stop = stop;
    };
    const watcher = {
      opened: () => (this.state = 'open'),
      message: (message: Message) => this.#message(message),
      closed: (code: number) => {
        if (code === FORBIDDEN || code === SERVER_DELETED) return this.#end(m.taken());
        if (this.state !== 'connecting' || hasProved) return this.#end(m.lost());
        // A browser does not say why a socket was refused. Perhaps the service wants to know first who asks.
        hasProved = true;
        void proofFor(path).then(
          (proof) => {
            if (proof === 'given') connect();
            else this.#end(proof === 'refused' ? m.notProved() : m.lost());
          },
          () => this.#end(m.lost()),
        );
      },
    };
    connect();
    this.terminal.focus();
    return () => {
      isLeft = true;
      this.#close();
      this.terminal.dispose();
    };
  }

  /** As many columns and rows as there is room for. */
  fit(): void {
    const size = this.#fit.proposeDimensions();
    if (!size || Number.isNaN(size.cols) || Number.isNaN(size.rows)) return;
    this.terminal.resize(Math.min(1000, Math.max(2, size.cols)), Math.min(1000, Math.max(1, size.rows)));
  }

  type(text: string): void {
    if (this.state !== 'open') return;
    this.#typing.add(this.control ? withControl(text) : text);
    this.control = false;
  }

  press(key: ScreenKey): void {
    this.type(sent(key, this.terminal.modes.applicationCursorKeysMode));
    this.terminal.focus();
  }

  paste(text: string): void {
    this.terminal.paste(text);
    this.terminal.focus();
  }

  /** Returns false for keys that are not the terminal's. */
  #key(event: KeyboardEvent): boolean {
    if (event.key === 'F6' && event.ctrlKey) {
      event.preventDefault();
      if (event.type === 'keydown') this.#leave();
      return false;
    }
    const key = event.key.toLowerCase();
    const isControl = event.ctrlKey && !event.altKey && !event.metaKey;
    // Ctrl C copies where something is selected, as everywhere else, and interrupts where nothing is.
    if (isControl && key === 'c' && (event.shiftKey || this.terminal.hasSelection())) {
      if (event.type === 'keydown' && this.terminal.hasSelection()) {
        document.execCommand('copy');
        this.terminal.clearSelection();
      }
      event.preventDefault();
      return false;
    }
    // The browser pastes by itself.
    return !(isControl && event.shiftKey && key === 'v');
  }

  #message({ type, data }: Message): void {
    if (type === 'output') this.#intake.add((data as { data: string }).data);
    else if (type === 'exit') {
      const code = (data as { exit_code: number | null }).exit_code;
      this.#end(code === null || code === 0 ? m.shellEnded() : m.shellEndedWith({ code: String(code) }));
    } else if (type === 'error') {
      const error = data as { code: string; detail: string };
      this.refusal = reasonOf(error);
      this.#end(sentence(error.detail));
    }
  }

  #end(reason: string): void {
    if (this.state === 'ended') return;
    this.state = 'ended';
    this.reason = reason;
    this.terminal.options.cursorBlink = false;
    this.terminal.options.disableStdin = true;
    this.#close();
  }

  #close(): void {
    this.#typing.stop();
    untrack(() => this.#stop?.());
    this.#stop = null;
    this.#socket = null;
  }
}
