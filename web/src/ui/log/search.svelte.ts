// What is searched for in a log, and where it was found. The work is done in a worker, a piece of the log a time, so that
// neither a long log nor an expression that takes for ever is felt on the page.
import * as m from '#messages/log';
import type { Range } from './ansi';
import type { Lines } from './lines';
import { compile, find, READY, type Answer, type Question } from './pattern';

/** A piece that takes longer will not come to an end that anybody waits for. */
const PATIENCE_MS = 1_500;
const PIECE_LINES = 5_000;
const PIECE_CHARACTERS = 500_000;

export interface Hits {
  /** Lines were found, in order behind those that were. */
  found(numbers: number[]): void;
  /** What was found is no more: something else is searched for. */
  restarted(): void;
}

export class Search {
  text = $state('');
  isRegex = $state(false);
  /** Why it cannot be searched for. */
  fault = $state<string | null>(null);
  /** How many of the lines held have it. */
  count = $state(0);
  busy = $state(false);
  /** Only lines that have it are shown. */
  isOnly = $state(false);
  /** The number of the line that was gone to, and which of those found it is. */
  current = $state<number | null>(null);
  place = $state(0);

  readonly #lines: Lines;
  readonly #hits: Hits;
  #pattern: RegExp | null = null;
  #worker: Worker | null = null;
  /** The worker has begun: before that it is its download that takes long, and not the expression. */
  #isReady = false;
  /** What it is asked when it has. */
  #question: Question | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #search = 0;
  /** Everything before it was searched, and up to where the worker is. */
  #next = 0;
  #asked = 0;
  #isAsking = false;
  #found: number[] = [];
  #head = 0;
  readonly #slow = new Set<number>();

  constructor(lines: Lines, hits: Hits) {
    this.#lines = lines;
    this.#hits = hits;
  }

  /** Whether there is something to search for. */
  get isOn(): boolean {
    return this.#pattern !== null;
  }

  set(text: string, isRegex: boolean): void {
    this.text = text;
    this.isRegex = isRegex;
    const { pattern, fault } = text === '' ? { pattern: null, fault: null } : compile(text, isRegex);
    this.#begin(pattern, fault);
  }

  /** Lines came. */
  grown(): void {
    if (this.#pattern && !this.#isAsking) this.#ask();
  }

  /** The log dropped lines. */
  trimmed(): void {
    while (this.#head < this.#found.length && (this.#found[this.#head] ?? 0) < this.#lines.first) {
      this.#slow.delete(this.#found[this.#head] ?? 0);
      this.#head += 1;
    }
    if (this.#head > 10_000 && this.#head * 2 > this.#found.length) {
      this.#found.splice(0, this.#head);
      this.#head = 0;
    }
  }

  /** Publishes the numbers that changed: once a frame, not once a line. */
  tell(): void {
    this.count = this.#found.length - this.#head;
    this.place = this.current === null ? 0 : Math.max(0, this.#indexOf(this.current) - this.#head) + 1;
  }

  numbers(): number[] {
    return this.#found.slice(this.#head);
  }

  /** Where a line has it. A line that the worker has not come to yet, or was slow with, is not asked here. */
  ranges(number: number, plain: string): Range[] {
    if (!this.#pattern || this.#found[this.#indexOf(number)] !== number) return [];
    return this.#slow.has(number) ? [[0, plain.length]] : find(this.#pattern, plain);
  }

  /** The line found behind (`1`) or before (`-1`) one, around the ends: the first that `fits`. */
  step(from: number, direction: 1 | -1, fits: (number: number) => boolean = () => true): number | null {
    const count = this.#found.length - this.#head;
    const index = this.#indexOf(direction === 1 ? from + 1 : from) - this.#head + (direction === 1 ? 0 : -1);
    for (let step = 0; step < count; step += 1) {
      const number = this.#found[this.#head + ((((index + step * direction) % count) + count) % count)];
      if (number !== undefined && fits(number)) return number;
    }
    return null;
  }

  /** Where a text that stands for a line has it: none where the line has not, or was slow. */
  rangesIn(number: number, text: string): Range[] {
    if (!this.#pattern || this.#found[this.#indexOf(number)] !== number || this.#slow.has(number)) return [];
    return find(this.#pattern, text);
  }

  /** Whether it was found in a line. */
  has(number: number): boolean {
    return this.#pattern !== null && this.#found[this.#indexOf(number)] === number;
  }

  close(): void {
    this.#giveUp();
    this.#pattern = null;
  }

  #begin(pattern: RegExp | null, fault: string | null): void {
    // An expression that is being worked on is given up at once: it may never end.
    if (this.#isAsking && this.#isReady) this.#giveUp();
    this.#pattern = pattern;
    this.fault = fault;
    this.#search += 1;
    this.#next = this.#lines.first;
    this.#found = [];
    this.#head = 0;
    this.#slow.clear();
    this.current = null;
    this.tell();
    this.#hits.restarted();
    this.#question = null;
    this.#isAsking = false;
    if (pattern) this.#ask();
    else this.busy = false;
  }

  #ask(): void {
    const pattern = this.#pattern;
    const from = Math.max(this.#next, this.#lines.first);
    this.#isAsking = pattern !== null && from < this.#lines.end;
    this.busy = this.#isAsking && (!this.#isReady || this.#lines.end - from > PIECE_LINES);
    if (!pattern || !this.#isAsking) return;
    const texts: string[] = [];
    let characters = 0;
    for (const line of this.#lines.between(from, from + PIECE_LINES)) {
      texts.push(line.plain);
      characters += line.plain.length;
      if (characters > PIECE_CHARACTERS) break;
    }
    this.#asked = from;
    this.#next = from + texts.length;
    this.#question = { search: this.#search, source: pattern.source, flags: pattern.flags, texts };
    this.#worker ??= this.#hire();
    if (this.#isReady) this.#put();
  }

  #put(): void {
    if (!this.#question) return;
    this.#worker?.postMessage(this.#question);
    this.#question = null;
    this.#timer = setTimeout(() => this.#fail(m.slow()), PATIENCE_MS);
  }

  #hire(): Worker {
    const worker = new Worker(new URL('./search.worker.ts', import.meta.url), { type: 'module' });
    worker.onmessage = ({ data }: MessageEvent<Answer | typeof READY>) => {
      // What one that was given up has said already may still come.
      if (worker !== this.#worker) return;
      if (data !== READY) return this.#answered(data);
      this.#isReady = true;
      this.#put();
    };
    worker.onerror = () => worker === this.#worker && this.#fail(m.noSearch());
    return worker;
  }

  #answered(answer: Answer): void {
    if (answer.search !== this.#search) return;
    clearTimeout(this.#timer);
    const numbers: number[] = [];
    for (const hit of answer.hits) {
      const number = this.#asked + (hit < 0 ? ~hit : hit);
      if (number < this.#lines.first) continue;
      if (hit < 0) this.#slow.add(number);
      numbers.push(number);
    }
    for (const number of numbers) this.#found.push(number);
    this.#hits.found(numbers);
    this.#ask();
  }

  #fail(fault: string): void {
    this.#giveUp();
    this.#begin(null, fault);
  }

  #giveUp(): void {
    this.#worker?.terminate();
    this.#worker = null;
    this.#isReady = this.#isAsking = false;
    clearTimeout(this.#timer);
  }

  /** Where a number stands among those found, or would. */
  #indexOf(number: number): number {
    let [low, high] = [this.#head, this.#found.length];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if ((this.#found[middle] ?? 0) < number) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
