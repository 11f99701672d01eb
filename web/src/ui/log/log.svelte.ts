// A log that is shown: the lines held, which of them are rows, what is searched for, what is selected. LogView draws it.
// Lines are taken as they come, which costs little; what is shown follows once a frame.
import * as m from '#messages/log';
import { Lines, MOST_LINES, note, written, type Line } from './lines';
import { Rows } from './rows';
import { Search } from './search.svelte';

/** Longer lines are shown in part until somebody asks for the rest. */
export const SHOWN_CHARACTERS = 5_000;

/** What is needed to say how high a row will be before it is drawn. */
export interface Layout {
  lineHeight: number;
  /** Characters that fit beside time and mark; null: lines are not wrapped. */
  columns: number | null;
}

export class Log {
  readonly lines: Lines;
  readonly rows: Rows;
  readonly search: Search;
  /** The end is kept in sight as lines come. */
  isFollowing = $state(true);
  isPaused = $state(false);
  /** Lines that came during a pause. */
  aside = $state(0);
  /** How many lines are held. */
  count = $state(0);
  /** The oldest lines have made room for newer ones. */
  isFull = $state(false);
  wrap = $state(true);
  times = $state(true);
  /** Numbers of the first and the last line selected. */
  selection = $state.raw<{ from: number; to: number } | null>(null);
  /** The longest line so far, in characters: how wide the list is where lines are not wrapped. */
  widest = 0;

  #aside: Lines | null = null;
  #clearedAt = 0;
  #layout: Layout = { lineHeight: 20, columns: null };
  readonly #expanded = new Set<number>();
  #isFiltered = false;
  #isTold = true;
  #changed: () => void = () => undefined;
  #reveal: (number: number) => void = () => undefined;

  constructor(capacity = MOST_LINES) {
    this.lines = new Lines(capacity);
    this.rows = new Rows(capacity);
    this.search = new Search(this.lines, {
      found: (numbers) => this.#found(numbers),
      restarted: () => this.#restarted(),
    });
  }

  /** Sets who draws it. `changed` is called at most once until the drawing is done. */
  drawnBy(changed: () => void, reveal: (number: number) => void): () => void {
    this.#changed = changed;
    this.#reveal = reveal;
    return () => {
      this.#changed = this.#reveal = () => undefined;
    };
  }

  push(lines: readonly Line[]): void {
    if (this.#aside) {
      for (const line of lines) this.#aside.push(line);
      this.#touch();
      return;
    }
    this.#take(lines);
  }

  pause(): void {
    if (this.#aside) return;
    this.#aside = new Lines(this.lines.capacity);
    this.isPaused = true;
  }

  /** Continues with what came during the pause. */
  resume(): void {
    const aside = this.#aside;
    this.#aside = null;
    this.isPaused = false;
    this.aside = 0;
    if (!aside) return;
    // What did not fit is said where it is missing.
    if (aside.first > 0) this.#take([note('dropped', m.dropped({ count: aside.first }))]);
    this.#take([...aside.between(aside.first, aside.end)]);
  }

  clear(): void {
    this.lines.clear();
    this.#clearedAt = this.lines.first;
    this.#aside?.clear();
    this.selection = null;
    this.widest = 0;
    this.#expanded.clear();
    this.search.set(this.search.text, this.search.isRegex);
    this.#rebuild();
  }

  /** Publishes everything that the drawing needs to know: once a frame. */
  settle(): void {
    this.#isTold = true;
    this.count = this.lines.count;
    this.isFull = this.lines.first > this.#clearedAt;
    this.aside = this.#aside ? this.#aside.count : 0;
    this.search.tell();
  }

  layout(layout: Layout): void {
    if (layout.lineHeight === this.#layout.lineHeight && layout.columns === this.#layout.columns) return;
    this.#layout = layout;
    this.#rebuild();
  }

  filter(isOnly: boolean): void {
    this.search.isOnly = isOnly;
    this.#rebuild();
  }

  isExpanded(number: number): boolean {
    return this.#expanded.has(number);
  }

  expand(number: number): void {
    this.#expanded.add(number);
    this.#touch();
  }

  /** Goes to the next line found, or the one before, from the one gone to or from what is in sight. */
  step(direction: 1 | -1, inSight: number): void {
    const number = this.search.step(this.search.current ?? inSight - (direction === 1 ? 1 : 0), direction);
    if (number === null) return;
    this.search.current = number;
    this.isFollowing = false;
    this.#reveal(number);
    this.#touch();
  }

  toEnd(): void {
    this.isFollowing = true;
    this.#touch();
  }

  select(number: number, extend: boolean): void {
    const before = this.selection;
    this.selection = extend && before ? { from: before.from, to: number } : { from: number, to: number };
  }

  selectAll(): void {
    if (this.lines.count > 0) this.selection = { from: this.lines.first, to: this.lines.end - 1 };
  }

  isSelected(number: number): boolean {
    const selection = this.selection;
    if (!selection) return false;
    return number >= Math.min(selection.from, selection.to) && number <= Math.max(selection.from, selection.to);
  }

  /** Lines selected, of those that are shown. */
  selected(): Line[] {
    const selection = this.selection;
    if (!selection) return [];
    const [from, to] = [Math.min(selection.from, selection.to), Math.max(selection.from, selection.to)];
    const lines: Line[] = [];
    for (let row = this.rows.rowOf(from); row < this.rows.end && this.rows.number(row) <= to; row += 1) {
      const line = this.lines.get(this.rows.number(row));
      if (line) lines.push(line);
    }
    return lines;
  }

  /** What is held, or what is shown of it while it is filtered, in pieces for a file. */
  file(): string[] {
    const pieces: string[] = [];
    for (let row = this.rows.first; row < this.rows.end; row += 1) {
      const line = this.lines.get(this.rows.number(row));
      if (line) pieces.push(`${written(line, { times: this.times })}\n`);
    }
    return pieces;
  }

  close(): void {
    this.search.close();
  }

  #take(lines: readonly Line[]): void {
    for (const line of lines) {
      const number = this.lines.end;
      this.lines.push(line);
      this.widest = Math.max(this.widest, Math.min(line.plain.length + (line.stream?.length ?? 0), SHOWN_CHARACTERS));
      if (!this.#isFiltered) this.rows.push(number, this.#height(line, number));
    }
    this.rows.dropBefore(this.lines.first);
    this.search.trimmed();
    this.search.grown();
    this.#touch();
  }

  #found(numbers: number[]): void {
    if (this.#isFiltered) {
      for (const number of numbers) {
        const line = this.lines.get(number);
        if (line) this.rows.push(number, this.#height(line, number));
      }
    }
    this.#touch();
  }

  #restarted(): void {
    this.#rebuild();
  }

  #rebuild(): void {
    this.#isFiltered = this.search.isOnly && this.search.isOn;
    this.rows.clear();
    const numbers = this.#isFiltered ? this.search.numbers() : null;
    if (numbers) {
      for (const number of numbers) this.#row(number);
    } else {
      for (let number = this.lines.first; number < this.lines.end; number += 1) this.#row(number);
    }
    this.#touch();
  }

  #row(number: number): void {
    const line = this.lines.get(number);
    if (line) this.rows.push(number, this.#height(line, number));
  }

  /** A guess, right for most lines; what is drawn is measured. */
  #height(line: Line, number: number): number {
    const { lineHeight, columns } = this.#layout;
    if (columns === null) return lineHeight;
    const isWhole = line.plain.length <= SHOWN_CHARACTERS || this.#expanded.has(number);
    const tag = line.stream && line.stream !== 'stdout' ? line.stream.length + 1 : 0;
    const length = (isWhole ? line.plain.length : SHOWN_CHARACTERS) + tag;
    return lineHeight * Math.max(1, Math.ceil(length / columns));
  }

  #touch(): void {
    if (!this.#isTold) return;
    this.#isTold = false;
    this.#changed();
  }
}
