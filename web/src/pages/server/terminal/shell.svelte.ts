// One terminal: what is typed goes to the server, what comes is drawn.
import * as m from '#messages/terminal';
import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';
import '@xterm/xterm/css/xterm.css';
import type { Message } from '../../../live/socket.svelte';
import { sentence } from '../../../api/failure';
import { reasonOf, type Reason } from '../../../signing/refusals';
import { boundRepeats } from './bounds';
import { divided, Intake, Typing } from './flow';
import { sent, withControl, type ScreenKey } from './keys';
import { Line, type Loss } from './line';
import type { Ticket } from '../../../session/tickets';

/** Lines that can be scrolled back to. */
const SCROLLBACK = 10_000;

export type ShellState = 'connecting' | 'open' | 'waiting' | 'ended';

const LOSSES: Record<Loss, () => string> = {
  taken: m.taken,
  lost: m.lost,
  late: m.notResumed,
  notProved: m.notProved,
};

export class Shell {
  state = $state<ShellState>('connecting');
  /** Until when it waits for the connection; null while it does not. */
  waitsUntil = $state<number | null>(null);
  /** Why it is not there any more. */
  reason = $state('');
  /** Why what was signed for it did not suffice, where that was the reason. */
  refusal = $state<Reason | null>(null);
  /** The next character is typed with Ctrl. */
  control = $state(false);
  hasSelection = $state(false);
  readonly terminal: Terminal;

  readonly #fit = new FitAddon();
  #line: Line | null = null;
  /** The output up to here was drawn by this page before it was loaded again. It has answered what programs asked in it. */
  #answeredBytes = 0;
  /** That output is drawn again. */
  #isReplaying = false;
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
    const typed = (text: string) => this.#isReplaying || this.type(text);
    this.terminal.onData(typed);
    this.terminal.onBinary(typed);
    this.terminal.onSelectionChange(() => (this.hasSelection = this.terminal.hasSelection()));
    this.terminal.onResize(({ cols, rows }) => {
      if (this.state === 'open') this.#line?.send({ type: 'resize', data: { columns: cols, rows } });
    });
    this.#intake = new Intake((text, done) => this.terminal.write(text, done));
    const line = () => this.#line;
    this.#typing = new Typing({
      send: (data) => line()?.send({ type: 'input', data: { data } }) ?? false,
      get backlog() {
        return line()?.backlog ?? 0;
      },
    });
  }

  /** Opens it on a server, in an element, with what was signed for it, or resumes one. Call what it gives when you are done. */
  open(serverId: string, element: HTMLElement, how: { signed: string | null; ticket: Ticket | null }): () => void {
    this.terminal.open(element);
    this.fit();
    const line = new Line(serverId, () => this.terminal, {
      open: () => this.#opened(),
      waits: (until) => {
        this.state = 'waiting';
        this.waitsUntil = until;
        // What is typed now would arrive later, where nobody sees what it does.
        this.#typing.stop();
      },
      gone: (why) => this.#end(LOSSES[why]()),
      message: (message) => this.#message(message),
    });
    this.#line = line;
    this.#answeredBytes = how.ticket?.bytes ?? 0;
    this.#isReplaying = this.#answeredBytes > 0;
    if (how.ticket) line.resume(how.ticket);
    else line.open(how.signed);
    this.terminal.focus();
    return () => {
      this.#close();
      this.terminal.dispose();
    };
  }

  #opened(): void {
    const wasAway = this.state === 'waiting';
    this.state = 'open';
    this.waitsUntil = null;
    if (!wasAway) return;
    // The size may have changed in between.
    const { cols, rows } = this.terminal;
    this.#line?.send({ type: 'resize', data: { columns: cols, rows } });
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
    if (type === 'output') this.#output(data as { data: string; offset?: number });
    else if (type === 'left_out') {
      // Colours and modes may have been changed by what is missing: both are reset.
      const missing = m.leftOut({ count: (data as { bytes: number }).bytes });
      this.#intake.add(`\x1b[!p\x1b[0m\r\n[${missing}]\r\n`);
    } else if (type === 'exit') {
      const code = (data as { exit_code: number | null }).exit_code;
      this.#end(code === null || code === 0 ? m.shellEnded() : m.shellEndedWith({ code: String(code) }));
    } else if (type === 'error') {
      const error = data as { code: string; detail: string; reason?: Reason };
      if (error.code === 'terminal_resumed') return this.#end(m.elsewhere());
      if (error.code === 'not_found') return this.#end(m.notResumed());
      this.refusal = reasonOf(error);
      this.#end(sentence(error.detail));
    }
  }

  #output({ data, offset = 0 }: { data: string; offset?: number }): void {
    if (!this.#isReplaying) return this.#intake.add(data);
    const bytes = new TextEncoder().encode(data).length;
    const [old, fresh] = divided(data, this.#answeredBytes - offset);
    this.#intake.add(old);
    if (offset + bytes >= this.#answeredBytes) this.terminal.write('', () => (this.#isReplaying = false));
    this.#intake.add(fresh);
  }

  #end(reason: string): void {
    if (this.state === 'ended') return;
    this.state = 'ended';
    this.waitsUntil = null;
    this.reason = reason;
    this.terminal.options.cursorBlink = false;
    this.terminal.options.disableStdin = true;
    this.#close();
  }

  #close(): void {
    this.#typing.stop();
    this.#line?.close();
    this.#line = null;
  }
}
