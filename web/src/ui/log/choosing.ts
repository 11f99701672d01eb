// What a pointer and keys do in a log that is shown. A press on a line's margin selects it; a drag, or Shift, selects up to
// where it ends. Keys move a cursor from line to line.
import * as m from '#messages/log';
import { copy } from '../../lib/clipboard';
import { toasts } from '../toasts.svelte';
import { written, type Line } from './lines';
import type { Log } from './log.svelte';

export interface Sight {
  log: () => Log;
  /** How far the log is scrolled. */
  scrolled: () => number;
  /** Brings a line into sight by the shortest way. */
  seek: (number: number) => void;
  /** How many lines fit into what is seen. */
  page: () => number;
}

/** After a `g` the next letter goes to another page: src/frame/Keys.svelte. */
const PAIR_MS = 1_500;

export class Choosing {
  #isDragging = false;
  #pairUntil = 0;
  readonly #sight: Sight;

  constructor(sight: Sight) {
    this.#sight = sight;
  }

  pressed(event: PointerEvent & { currentTarget: HTMLElement }): void {
    if (!(event.target instanceof Element) || event.button !== 0) return;
    const log = this.#sight.log();
    const number = lineAt(event.target);
    if (!event.target.closest('[data-gutter]') || number === null) return;
    event.preventDefault();
    event.currentTarget.focus({ preventScroll: true });
    const isAlone = log.selection?.from === number && log.selection.to === number;
    if (isAlone && !event.shiftKey) log.selection = null;
    else log.select(number, event.shiftKey);
    this.#isDragging = event.pointerType === 'mouse';
  }

  moved(event: PointerEvent): void {
    if (!this.#isDragging || event.buttons !== 1) return;
    const log = this.#sight.log();
    const number = lineAt(event.target);
    if (number !== null && number !== log.selection?.to) log.select(number, true);
  }

  released(): void {
    this.#isDragging = false;
  }

  /** What a click on a line is for: its buttons, the cursor, and what a line of JSON consists of. */
  clicked(event: MouseEvent): void {
    if (!(event.target instanceof Element) || event.target.closest('[data-detail], [data-gutter]')) return;
    const log = this.#sight.log();
    const number = lineAt(event.target);
    if (number === null) return;
    if (event.target.closest('[data-expand]')) return log.expand(number);
    if (event.target.closest('[data-fold]')) return log.unfold(number);
    if (event.target.closest('[data-open]')) return log.toggle(number);
    // A press that marked text, or a second one that marks a word, is meant for the text.
    if (!isNothingMarked() || event.detail > 1) return;
    if (event.target.closest('[data-parsed]')) log.toggle(number);
    else log.cursor = number;
  }

  keyed(event: KeyboardEvent): void {
    const log = this.#sight.log();
    const isControl = event.ctrlKey || event.metaKey;
    if (event.altKey || isWithin(event)) return;
    const { key } = event;
    const isSecond = event.timeStamp < this.#pairUntil;
    this.#pairUntil = key === 'g' ? event.timeStamp + PAIR_MS : 0;
    if (key === 'g' || (isSecond && !isControl)) return;
    if (key === 'Escape' && log.selection) log.selection = null;
    else if (key === 'Escape' && log.cursor !== null && log.isOpen(log.cursor)) log.toggle(log.cursor);
    else if (key === 'a' && isControl) log.selectAll();
    else if (key === 'c' && isControl && log.selection && isNothingMarked()) void copySelected(log);
    else if (isControl) return;
    else if (key === 'End') log.toEnd();
    else if (key === 'Home') this.#toFirst();
    else if ((key === 'ArrowDown' || key === 'ArrowUp') && event.shiftKey) this.#extend(key === 'ArrowDown');
    else if (key === 'ArrowDown' || key === 'j') this.#move(1);
    else if (key === 'ArrowUp' || key === 'k') this.#move(-1);
    else if (key === 'PageDown') this.#move(this.#sight.page());
    else if (key === 'PageUp') this.#move(-this.#sight.page());
    else if (key === 'Enter' && log.cursor !== null) log.toggle(log.cursor);
    else if (key === 'c') void copyChosen(log);
    else if (key === 'n') log.step(1, this.#inSight());
    else if (key === 'N') log.step(-1, this.#inSight());
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #inSight(): number {
    const { rows } = this.#sight.log();
    return rows.count === 0 ? 0 : rows.number(rows.at(this.#sight.scrolled() + 1));
  }

  #toFirst(): void {
    const { rows } = this.#sight.log();
    if (rows.count === 0) return;
    this.#sight.log().cursor = rows.number(rows.first);
    this.#sight.log().isFollowing = false;
    this.#sight.seek(rows.number(rows.first));
  }

  #move(by: number): void {
    const number = this.#sight.log().move(by, this.#inSight());
    if (number !== null) this.#sight.seek(number);
  }

  #extend(isDown: boolean): void {
    const log = this.#sight.log();
    const { rows, selection } = log;
    if (rows.count === 0) return;
    if (!selection) return log.select(log.cursor ?? this.#inSight(), false);
    const row = rows.rowOf(selection.to) + (isDown ? 1 : -1);
    const number = rows.number(Math.min(rows.end - 1, Math.max(rows.first, row)));
    log.select(number, true);
    this.#sight.seek(number);
  }
}

/** Copies the lines that are selected, and says so. */
export async function copySelected(log: Log): Promise<void> {
  await copyLines(log, log.selected());
}

/** Copies what is selected, or else the line of the cursor with all that continues it. */
async function copyChosen(log: Log): Promise<void> {
  if (log.selection) return copySelected(log);
  if (log.cursor !== null) await copyLines(log, log.whole(log.cursor));
}

export async function copyLines(log: Log, lines: Line[]): Promise<void> {
  const isDone = await copy(lines.map((line) => written(line, { times: log.times })).join('\n'));
  if (isDone) toasts.done(m.copied({ count: lines.length }));
  else toasts.failed(m.notCopied());
}

function lineAt(target: EventTarget | null): number | null {
  const number = target instanceof Element ? target.closest<HTMLElement>('[data-line]')?.dataset.line : undefined;
  return number === undefined ? null : Number(number);
}

/** Keys of what stands within the log (a button, a link) are its own, but for Escape. */
function isWithin(event: KeyboardEvent): boolean {
  return event.target !== event.currentTarget && event.key !== 'Escape';
}

function isNothingMarked(): boolean {
  return getSelection()?.isCollapsed ?? true;
}
