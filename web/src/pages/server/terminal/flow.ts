// What stands between a terminal and its socket. A page cannot ask a socket to wait: what comes faster than it can be
// drawn would fill the memory, and a text that is pasted at once would be refused.
import * as m from '#messages/terminal';

/** Characters that may wait to be drawn; a screen that is further behind shows what nobody can read. */
const MOST_WAITING = 4 * 1024 * 1024;
/** It draws again when so few are left. */
const FEW_WAITING = 256 * 1024;

/** Draws what comes, and leaves out what the screen cannot follow. */
export class Intake {
  readonly #draw: (text: string, done: () => void) => void;
  #waiting = 0;
  #leftOut = 0;

  /** `draw` calls back when the text is on the screen. */
  constructor(draw: (text: string, done: () => void) => void) {
    this.#draw = draw;
  }

  add(text: string): void {
    if (this.#leftOut > 0 || this.#waiting + text.length > MOST_WAITING) {
      this.#leftOut += text.length;
      return;
    }
    this.#write(text);
  }

  #write(text: string): void {
    this.#waiting += text.length;
    this.#draw(text, () => this.#drawn(text.length));
  }

  #drawn(count: number): void {
    this.#waiting -= count;
    if (this.#leftOut === 0 || this.#waiting > FEW_WAITING) return;
    const missing = m.skipped({ count: this.#leftOut });
    this.#leftOut = 0;
    // Colours and modes may have been changed by what is missing: both are reset.
    this.#write(`\x1b[!p\x1b[0m\r\n[${missing}]\r\n`);
  }
}

/** So many characters go in one message: a JSON string may need six bytes for each, and the service takes 128 KiB. */
const PIECE = 16 * 1024;
/** Bytes that may lie in the browser's own buffer. */
const MOST_BACKLOG = 64 * 1024;
const AGAIN_MS = 20;

interface Way {
  send(text: string): boolean;
  readonly backlog: number;
}

/** Sends what is typed, and what is pasted in pieces, as fast as the connection takes it. */
export class Typing {
  readonly #way: Way;
  #queue: string[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(way: Way) {
    this.#way = way;
  }

  add(text: string): void {
    this.#queue.push(...pieces(text));
    if (this.#timer === undefined) this.#send();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#queue = [];
  }

  #send(): void {
    this.#timer = undefined;
    while (this.#queue.length > 0) {
      if (this.#way.backlog > MOST_BACKLOG) {
        this.#timer = setTimeout(() => this.#send(), AGAIN_MS);
        return;
      }
      const piece = this.#queue.shift();
      if (piece !== undefined && !this.#way.send(piece)) this.#queue = [];
    }
  }
}

/** A text up to so many bytes, and after them. */
export function divided(text: string, bytes: number): [string, string] {
  if (bytes <= 0) return ['', text];
  const all = new TextEncoder().encode(text);
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  return [decoder.decode(all.subarray(0, bytes)), decoder.decode(all.subarray(bytes))];
}

/** A text in pieces that fit into a message; no character is cut in two. */
export function pieces(text: string): string[] {
  const found: string[] = [];
  for (let from = 0; from < text.length;) {
    let to = Math.min(from + PIECE, text.length);
    const code = text.charCodeAt(to);
    if (to < text.length && code >= 0xdc00 && code <= 0xdfff) to -= 1;
    found.push(text.slice(from, to));
    from = to;
  }
  return found;
}
