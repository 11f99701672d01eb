// What a pointer and keys select in a log that is shown. A press on a line's margin selects it; a drag, or Shift, selects up to
// where it ends.
import * as m from '#messages/log';
import { copy } from '../../lib/clipboard';
import { toasts } from '../toasts.svelte';
import { written } from './lines';
import type { Log } from './log.svelte';

export class Choosing {
  #isDragging = false;
  readonly #log: () => Log;
  /** How far the log is scrolled. */
  readonly #scrolled: () => number;

  constructor(log: () => Log, scrolled: () => number) {
    this.#log = log;
    this.#scrolled = scrolled;
  }

  pressed(event: PointerEvent & { currentTarget: HTMLElement }): void {
    if (!(event.target instanceof Element) || event.button !== 0) return;
    const log = this.#log();
    const number = lineAt(event.target);
    if (event.target.closest('[data-expand]') && number !== null) return log.expand(number);
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
    const log = this.#log();
    const number = lineAt(event.target);
    if (number !== null && number !== log.selection?.to) log.select(number, true);
  }

  released(): void {
    this.#isDragging = false;
  }

  keyed(event: KeyboardEvent): void {
    const log = this.#log();
    const isControl = event.ctrlKey || event.metaKey;
    if (event.key === 'Escape' && log.selection) log.selection = null;
    else if (event.key === 'a' && isControl) log.selectAll();
    else if (event.key === 'c' && isControl && log.selection && isNothingMarked()) void copySelected(log);
    else if (event.key === 'End' && !event.ctrlKey) log.toEnd();
    else if ((event.key === 'ArrowDown' || event.key === 'ArrowUp') && event.shiftKey)
      this.#extend(event.key === 'ArrowDown');
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #extend(isDown: boolean): void {
    const log = this.#log();
    const { rows, selection } = log;
    if (rows.count === 0) return;
    if (!selection) return log.select(rows.number(rows.at(this.#scrolled() + 1)), false);
    const row = rows.rowOf(selection.to) + (isDown ? 1 : -1);
    log.select(rows.number(Math.min(rows.end - 1, Math.max(rows.first, row))), true);
  }
}

/** Copies the lines that are selected, and says so. */
export async function copySelected(log: Log): Promise<void> {
  const lines = log.selected();
  const isDone = await copy(lines.map((line) => written(line, { times: log.times })).join('\n'));
  if (isDone) toasts.done(m.copied({ count: lines.length }));
  else toasts.failed(m.notCopied());
}

function lineAt(target: EventTarget | null): number | null {
  const number = target instanceof Element ? target.closest<HTMLElement>('[data-line]')?.dataset.line : undefined;
  return number === undefined ? null : Number(number);
}

function isNothingMarked(): boolean {
  return getSelection()?.isCollapsed ?? true;
}
