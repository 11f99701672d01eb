// The output of a command as a page keeps it: its first and its last half megabyte, as the service does, in blocks of
// lines, so that what is out of sight costs nothing. Each piece has its place: a piece that comes again adds nothing.
import * as m from '#messages/commandParts';
import { Ansi, type Style } from './ansi';

export type Stream = 'stdout' | 'stderr';

export interface Part extends Style {
  stream: Stream;
  text: string;
}

export interface Block {
  id: number;
  parts: Part[];
  bytes: number;
  lines: number;
}

/** What is shown of an output. */
export interface Shown {
  blocks: Block[];
  /** Bytes that are not kept, before the block at `leftOutAt`. */
  leftOut: number;
  leftOutAt: number;
  hasErrors: boolean;
  /** Lines that are kept. The last one need not be finished. */
  lines: number;
}

export const NOTHING: Shown = { blocks: [], leftOut: 0, leftOutAt: 0, hasErrors: false, lines: 0 };

/** Bytes that are kept of the beginning, and as many of the end. */
const HALF = 512 * 1024;
/** A block takes no more than this, but ends with a line. */
const BLOCK_LINES = 500;
const BLOCK_BYTES = 16 * 1024;
/** A line that is longer is cut into blocks all the same. */
const LINE_BYTES = 4 * BLOCK_BYTES;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export class OutputLog {
  #head: Block[] = [];
  #tail: Block[] = [];
  #headBytes = 0;
  #tailBytes = 0;
  #isHeadFull = false;
  #leftOut = 0;
  /** Where the next piece is expected, in bytes. */
  #end = 0;
  #next = 0;
  #hasErrors = false;
  /** Blocks that were added to since they were shown. */
  #changed = new Set<Block>();
  #ansi = { stdout: new Ansi(), stderr: new Ansi() };

  /** Adds a piece at its place; without one, right after the last. */
  add(stream: Stream, data: string, offset = this.#end): void {
    const size = length(data);
    if (offset + size <= this.#end) return;
    let text = data;
    if (offset < this.#end) text = decoder.decode(encoder.encode(data).subarray(this.#end - offset));
    else if (offset > this.#end) this.#miss(offset - this.#end);
    this.#end = offset + size;
    this.#hasErrors ||= stream === 'stderr';
    for (const lines of cut(text)) this.#push(stream, lines);
  }

  get isEmpty(): boolean {
    return this.#end === 0;
  }

  /** What is there now. Blocks that did not change since the last time are the same objects. */
  show(): Shown {
    const renew = (block: Block) => (this.#changed.has(block) ? { ...block, parts: [...block.parts] } : block);
    this.#head = this.#head.map(renew);
    this.#tail = this.#tail.map(renew);
    this.#changed.clear();
    const blocks = [...this.#head, ...this.#tail];
    const last = blocks[blocks.length - 1];
    const unfinished = last && !endsLine(last) ? 1 : 0;
    return {
      blocks,
      lines: blocks.reduce((sum, block) => sum + block.lines, unfinished),
      leftOut: this.#leftOut,
      leftOutAt: this.#head.length,
      hasErrors: this.#hasErrors,
    };
  }

  /** The middle is missing: what was kept of the end is middle now. */
  #miss(bytes: number): void {
    this.#leftOut += bytes + this.#tailBytes;
    this.#tail = [];
    this.#tailBytes = 0;
    this.#isHeadFull = true;
  }

  #push(stream: Stream, text: string): void {
    const list = this.#isHeadFull ? this.#tail : this.#head;
    const block = this.#room(list);
    const size = length(text);
    block.bytes += size;
    block.lines += count(text);
    for (const part of this.#ansi[stream].read(text)) append(block.parts, { stream, ...part });
    this.#changed.add(block);
    if (!this.#isHeadFull) {
      this.#headBytes += size;
      this.#isHeadFull = this.#headBytes >= HALF;
      return;
    }
    this.#tailBytes += size;
    for (let first = this.#tail[0]; first && this.#tailBytes - first.bytes >= HALF; first = this.#tail[0]) {
      this.#tail.shift();
      this.#tailBytes -= first.bytes;
      this.#leftOut += first.bytes;
    }
  }

  #room(list: Block[]): Block {
    const last = list[list.length - 1];
    if (last && !isFull(last)) return last;
    const block = { id: this.#next++, parts: [], bytes: 0, lines: 0 };
    list.push(block);
    return block;
  }
}

/** The whole as text, with a mark where something is left out. */
export function textOf(shown: Shown): string {
  const text = (blocks: Block[]) => blocks.flatMap((block) => block.parts.map((part) => part.text)).join('');
  const head = text(shown.blocks.slice(0, shown.leftOutAt));
  const tail = text(shown.blocks.slice(shown.leftOutAt));
  return shown.leftOut ? `${head}\n${m.copiedLeftOut({ count: String(shown.leftOut) })}\n${tail}` : head + tail;
}

function isFull(block: Block): boolean {
  if (block.bytes >= LINE_BYTES) return true;
  const isLong = block.lines >= BLOCK_LINES || block.bytes >= BLOCK_BYTES;
  return isLong && endsLine(block);
}

function endsLine(block: Block): boolean {
  return block.parts[block.parts.length - 1]?.text.endsWith('\n') ?? false;
}

function append(parts: Part[], part: Part): void {
  const last = parts[parts.length - 1];
  if (last && last.stream === part.stream && last.colour === part.colour && last.bold === part.bold) {
    parts[parts.length - 1] = { ...last, text: last.text + part.text };
  } else parts.push(part);
}

/** A text in pieces that fit into blocks: so many lines each, or what there is of a line that is too long. */
function* cut(text: string): Generator<string> {
  let from = 0;
  let lines = 0;
  while (from < text.length) {
    let at = from;
    lines = 0;
    while (at < text.length && lines < BLOCK_LINES && at - from < BLOCK_BYTES) {
      const next = text.indexOf('\n', at) + 1;
      const end = next || text.length;
      if (end - from > BLOCK_BYTES && at > from) break;
      at = Math.min(end, from + LINE_BYTES);
      lines += 1;
    }
    // Two halves of one character stay together.
    if (at < text.length && text.charCodeAt(at) >= 0xdc00 && text.charCodeAt(at) <= 0xdfff) at += 1;
    yield text.slice(from, at);
    from = at;
  }
}

function count(text: string): number {
  let lines = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines += 1;
  return lines;
}

/** In bytes of UTF-8. */
function length(text: string): number {
  return encoder.encode(text).length;
}
