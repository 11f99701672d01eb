// A log that is shown: the lines held, which of them are rows, what is searched for, what is selected. LogView draws it.
// Lines are taken as they come, which costs little; what is shown follows once a frame.
import * as m from '#messages/log';
import { Folds } from './folds';
import { heightOf, SHOWN_CHARACTERS, type Layout } from './layout';
import { LineLevels } from './lineLevels.svelte';
import type { Level } from './levels';
import { Lines, MOST_LINES, note, written, type Line } from './lines';
import { Renumbering } from './renumbering';
import { Rows } from './rows';
import { Search } from './search.svelte';

/** From when to when lines are shown, in milliseconds. */
export interface Span {
  from: number;
  to: number;
}

type OnLine = (number: number) => void;

export class Log {
  readonly lines: Lines;
  readonly rows: Rows;
  readonly search: Search;
  readonly levelsOf: LineLevels;
  /** The end is kept in sight as lines come. */
  isFollowing = $state(true);
  isPaused = $state(false);
  /** Lines that came during a pause. */
  aside = $state(0);
  /** How many lines are held. */
  count = $state(0);
  /** How many of them are rows. */
  shownCount = $state(0);
  /** The oldest lines have made room for newer ones. */
  isFull = $state(false);
  wrap = $state(true);
  times = $state(true);
  /** JSON and logfmt are shown as a message and fields. */
  isFormatted = $state(true);
  /** Only lines of these levels are shown; all where it is empty. */
  levels = $state.raw<ReadonlySet<Level>>(new Set());
  /** Only lines of this time are shown. */
  span = $state.raw<Span | null>(null);
  /** Of these logs no line is shown. */
  hidden = $state.raw<ReadonlySet<string>>(new Set());
  /** Changes with each frame in which lines came or went. */
  revision = $state(0);
  /** The line that keys are for. */
  cursor = $state<number | null>(null);
  /** Numbers of the first and the last line selected. */
  selection = $state.raw<{ from: number; to: number } | null>(null);
  /** The longest line so far, in characters: how wide the list is where lines are not wrapped. */
  widest = 0;

  #aside: Lines | null = null;
  #clearedAt = 0;
  #layout: Layout = { lineHeight: 20, columns: null };
  readonly #expanded = new Set<number>();
  readonly #open = new Set<number>();
  readonly #folds: Folds;
  /** Rows are those that were found, those whose level is known, or all, as long as nothing else hides them. */
  #driver: 'search' | 'levels' | 'lines' = 'lines';
  #isTold = true;
  #hasGrown = false;
  #changed: () => void = () => undefined;
  #reveal: OnLine = () => undefined;
  #hold: OnLine = () => undefined;
  #renumbered: (by: Renumbering) => void = () => undefined;

  constructor(capacity = MOST_LINES) {
    this.lines = new Lines(capacity);
    this.rows = new Rows(capacity);
    this.#folds = new Folds(this.lines);
    this.levelsOf = new LineLevels(this.lines, {
      headOf: (number) => this.#folds.headOf(number),
      read: (from, to) => this.#levelsRead(from, to),
    });
    this.search = new Search(this.lines, {
      found: (numbers) => this.#found(numbers),
      restarted: () => this.#rebuild(),
    });
  }

  /** Sets who draws it. `changed` is called at most once until the drawing is done. */
  drawnBy(changed: () => void, reveal: OnLine, hold: OnLine, renumbered: (by: Renumbering) => void): () => void {
    this.#changed = changed;
    this.#reveal = reveal;
    this.#hold = hold;
    this.#renumbered = renumbered;
    return () => {
      this.#changed = this.#reveal = this.#hold = this.#renumbered = () => undefined;
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

  /** Shows these in place of those that are held. The cursor and what was opened stay with their lines, the selection does not. */
  replace(lines: readonly Line[]): void {
    // What came during a pause is not among those.
    const aside = this.#aside;
    this.#aside = null;
    const numbers = new Renumbering(this.lines, lines);
    const cursor = this.cursor === null ? null : numbers.of(this.cursor);
    const [open, expanded] = [numbers.ofAll(this.#open), numbers.ofAll(this.#expanded)];
    this.clear();
    this.cursor = cursor;
    for (const number of open) this.#open.add(number);
    for (const number of expanded) this.#expanded.add(number);
    this.#renumbered(numbers);
    this.#take(lines);
    this.#aside = aside;
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
    this.cursor = null;
    this.widest = 0;
    this.#expanded.clear();
    this.#open.clear();
    this.#folds.clear();
    this.levelsOf.trimmed();
    this.search.set(this.search.text, this.search.isRegex);
    this.#rebuild();
  }

  /** Publishes everything that the drawing needs to know: once a frame. */
  settle(): void {
    this.#isTold = true;
    this.count = this.lines.count;
    this.shownCount = this.rows.count;
    this.isFull = this.lines.first > this.#clearedAt;
    this.aside = this.#aside ? this.#aside.count : 0;
    if (this.#hasGrown) this.revision += 1;
    this.#hasGrown = false;
    this.levelsOf.tell();
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

  /** Shows lines of these levels, this time and these logs alone. */
  narrow(to: { levels?: ReadonlySet<Level>; span?: Span | null; hidden?: ReadonlySet<string> }): void {
    if (to.levels) this.levels = to.levels;
    if (to.span !== undefined) this.span = to.span;
    if (to.hidden) this.hidden = to.hidden;
    this.#rebuild();
  }

  /** Whether something hides lines that are there. */
  get isNarrowed(): boolean {
    const isSearched = this.search.isOnly && this.search.text !== '';
    return isSearched || this.levels.size > 0 || this.span !== null || this.hidden.size > 0;
  }

  format(isFormatted: boolean): void {
    this.isFormatted = isFormatted;
    this.#rebuild();
  }

  isExpanded(number: number): boolean {
    return this.#expanded.has(number);
  }

  expand(number: number): void {
    this.#expanded.add(number);
    this.#touch();
  }

  /** Whether what a line consists of stands below it. */
  isOpen(number: number): boolean {
    return this.#open.has(number);
  }

  /** Opens a line, or closes it. One that is open stays where it is, whatever comes. */
  toggle(number: number): void {
    if (!this.#open.delete(number)) {
      this.#open.add(number);
      this.isFollowing = false;
    }
    this.cursor = number;
    this.#hold(number);
    this.#touch();
  }

  /** Where lines are folded below this one: how many, and whether they are shown. */
  foldAt(number: number): { count: number; isOpen: boolean } | null {
    return this.#driver === 'search' ? null : this.#folds.at(number);
  }

  unfold(number: number): void {
    this.#folds.toggle(number);
    this.#rebuild();
  }

  isContinuation(number: number): boolean {
    return this.#folds.headOf(number) !== number;
  }

  /** Goes to the next line found, or the one before, from the one gone to or from what is in sight. */
  step(direction: 1 | -1, inSight: number): void {
    const number = this.search.step(this.search.current ?? inSight - (direction === 1 ? 1 : 0), direction, (found) =>
      this.#passes(found),
    );
    if (number === null) return;
    this.search.current = number;
    this.cursor = number;
    this.show(number);
  }

  /** Brings a line into sight, whatever folds it. */
  show(number: number): void {
    this.isFollowing = false;
    if (this.#driver !== 'search' && this.#folds.isHidden(number)) this.unfold(number);
    this.#reveal(number);
    this.#touch();
  }

  /** Moves the cursor by so many rows. Returns the line that it is on then. */
  move(by: number, inSight: number): number | null {
    const { rows } = this;
    if (rows.count === 0) return null;
    const from = this.cursor === null ? rows.rowOf(inSight) - Math.sign(by) : rows.rowOf(this.cursor);
    const row = Math.min(rows.end - 1, Math.max(rows.first, from + by));
    this.cursor = rows.number(row);
    if (row < rows.end - 1) this.isFollowing = false;
    this.#touch();
    return this.cursor;
  }

  /** The first line that is shown of this time or later; null where there is none. */
  at(time: number): number | null {
    for (let row = this.rows.first; row < this.rows.end; row += 1) {
      const line = this.lines.get(this.rows.number(row));
      if (line && line.kind === 'line' && line.at !== null && line.at >= time) return this.rows.number(row);
    }
    return null;
  }

  toEnd(): void {
    this.isFollowing = true;
    this.#touch();
  }

  select(number: number, extend: boolean): void {
    const before = this.selection;
    this.cursor = number;
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

  /** A line with all that continues it. */
  whole(number: number): Line[] {
    return this.#folds.group(number).flatMap((one) => this.lines.get(one) ?? []);
  }

  /** What is held, or what is shown of it while it is filtered, in pieces for a file. What is folded is there, too. */
  file(): string[] {
    const pieces: string[] = [];
    for (const number of this.#candidates()) {
      const line = this.#passes(number) ? this.lines.get(number) : undefined;
      if (line) pieces.push(`${written(line, { times: this.times })}\n`);
    }
    return pieces;
  }

  close(): void {
    this.search.close();
    this.levelsOf.close();
  }

  #take(lines: readonly Line[]): void {
    for (const line of lines) {
      const number = this.lines.end;
      this.lines.push(line);
      this.#folds.push(number, line);
      const before = (line.stream?.length ?? 0) + (line.origin?.name.length ?? 0);
      this.widest = Math.max(this.widest, Math.min(line.plain.length + before, SHOWN_CHARACTERS));
      if (this.#driver === 'lines') this.#row(number);
    }
    this.rows.dropBefore(this.lines.first);
    this.levelsOf.trimmed();
    this.#folds.trimmed();
    this.search.trimmed();
    this.#hasGrown = true;
    this.levelsOf.grown();
    this.search.grown();
    this.#touch();
  }

  #levelsRead(from: number, to: number): void {
    if (this.#driver === 'levels') for (let number = from; number < to; number += 1) this.#row(number);
    this.#hasGrown = true;
    this.#touch();
  }

  #found(numbers: number[]): void {
    if (this.#driver === 'search') for (const number of numbers) this.#row(number);
    this.#touch();
  }

  #rebuild(): void {
    if (this.search.isOnly && this.search.isOn) this.#driver = 'search';
    else this.#driver = this.levels.size > 0 ? 'levels' : 'lines';
    this.rows.clear();
    for (const number of this.#candidates()) this.#row(number);
    this.#touch();
  }

  /** The lines that may be rows now; others become some when they were searched, or read. */
  *#candidates(): Generator<number> {
    if (this.#driver === 'search') return yield* this.search.numbers();
    const end = this.#driver === 'levels' ? this.levelsOf.next : this.lines.end;
    for (let number = this.lines.first; number < end; number += 1) yield number;
  }

  #passes(number: number): boolean {
    const line = this.lines.get(number);
    if (!line) return false;
    if (line.origin && this.hidden.has(line.origin.key)) return false;
    const { span } = this;
    if (span && (line.at === null || line.at < span.from || line.at >= span.to)) return false;
    if (this.levels.size === 0 || line.kind !== 'line') return true;
    const level = this.levelsOf.of(number);
    return level !== null && this.levels.has(level);
  }

  #row(number: number): void {
    const line = this.lines.get(number);
    if (!line || !this.#passes(number)) return;
    if (this.#driver !== 'search' && this.#folds.isHidden(number)) return;
    const isWhole = this.#expanded.has(number);
    this.rows.push(number, heightOf(line, this.#layout, { isWhole, isFormatted: this.isFormatted }));
  }

  #touch(): void {
    if (!this.#isTold) return;
    this.#isTold = false;
    this.#changed();
  }
}
