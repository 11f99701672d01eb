// A recording that is played: its clock, and the screen that follows it.
import { Terminal } from '@xterm/xterm';
import '@xterm/xterm/css/xterm.css';
import { boundRepeats, ignoreMouse } from '../bounds';
import type { Cast, Size } from './cast';
import { Drawing } from './drawing';
import { Playback, Timeline, type Speed } from './playback';

/** Lines that can be scrolled back to. Each change of size wraps all of them again. */
const SCROLLBACK = 1_000;

/** What the emulator would do beside the screen: titles, links that open pages, and the clipboard in a version to come. */
const IGNORED = [0, 1, 2, 8, 52];

export class Player {
  position = $state(0);
  isPlaying = $state(false);
  speed = $state<Speed>(1);
  hasEnded = $state(false);
  /** The size of the terminal at this moment. */
  size = $state.raw<Size>({ columns: 80, rows: 24 });
  readonly timeline: Timeline;
  readonly terminal: Terminal;

  readonly #playback: Playback;
  readonly #drawing: Drawing;

  constructor(cast: Cast) {
    this.timeline = new Timeline(cast.events.map((event) => event.seconds));
    this.#playback = new Playback(this.timeline.duration);
    // Nobody listens to what it would send: answers to questions of the recording, mouse and keys.
    this.terminal = new Terminal({
      fontFamily: getComputedStyle(document.documentElement).getPropertyValue('--mono'),
      scrollback: SCROLLBACK,
      cursorBlink: false,
      disableStdin: true,
      minimumContrastRatio: 4.5,
    });
    for (const number of IGNORED) this.terminal.parser.registerOscHandler(number, () => true);
    boundRepeats(this.terminal);
    ignoreMouse(this.terminal);
    // Keys are the page's: Tab leads to the next part of it.
    this.terminal.attachCustomKeyEventHandler(() => false);
    this.#drawing = new Drawing(cast, {
      write: (text, done) => this.terminal.write(text, done),
      resize: (size) => this.#resize(size),
      reset: () => this.#reset(),
    });
    this.#follow();
  }

  /** Shows it in an element. Call what it gives when you are done. */
  open(element: HTMLElement): () => void {
    this.terminal.open(element);
    this.#mute();
    // Nothing is typed: no stop of the keyboard, and no keyboard of a phone.
    if (this.terminal.textarea) this.terminal.textarea.inert = true;
    return () => {
      this.#drawing.stop();
      this.terminal.dispose();
    };
  }

  /** Whether a screen reader can read the rows of the screen. */
  setReadable(isReadable: boolean): void {
    this.terminal.options.screenReaderMode = isReadable;
    this.#mute();
  }

  /** Whether there is text to scroll back to: on the alternate screen there is none. */
  get canScroll(): boolean {
    return this.terminal.buffer.active.baseY > 0;
  }

  toggle(): void {
    if (this.#playback.isPlaying) this.#playback.pause();
    else this.#playback.play();
    this.#follow();
  }

  seek(position: number): void {
    this.#playback.seek(position);
    this.#follow();
  }

  choose(speed: Speed): void {
    this.#playback.speed = speed;
    this.#follow();
  }

  advance(ms: number): void {
    this.#playback.advance(ms);
    this.#follow();
  }

  #follow(): void {
    this.position = this.#playback.position;
    this.isPlaying = this.#playback.isPlaying;
    this.speed = this.#playback.speed;
    this.hasEnded = this.#playback.hasEnded;
    this.#drawing.show(this.timeline.countAt(this.position));
  }

  #resize(size: Size): void {
    this.terminal.resize(size.columns, size.rows);
    this.size = size;
  }

  /** The emulator would read aloud whatever it draws, after each step of the seek bar too. */
  #mute(): void {
    this.terminal.element?.querySelector('[aria-live]')?.setAttribute('aria-live', 'off');
  }

  #reset(): void {
    this.terminal.reset();
    // A recording may have stopped within a sequence, and hidden the cursor: what is drawn next begins as a new terminal does.
    this.terminal.write('\x18\x1bc\x1b[?25h');
    this.terminal.options.convertEol = false;
    this.terminal.options.cursorBlink = false;
    // Colours that the recording has changed stay otherwise.
    const { theme } = this.terminal.options;
    if (theme) this.terminal.options.theme = { ...theme };
  }
}
