// What somebody chose of how the fleet looks, kept in this browser.
import { chosenColumns, usualColumns, type ColumnKey } from './columns';
import type { View } from './choice';

const VIEW = 'fleet-view';
const COLUMNS = 'fleet-columns';
const FOLDED = 'fleet-folded';

/** Tags that are folded: more are forgotten, the oldest first. */
const MAX_FOLDED = 200;

function read(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    // Storage may be switched off: what is chosen holds until the page is left.
    return null;
  }
}

function write(key: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, value);
  } catch {
    // As above.
  }
}

function readView(): View | null {
  const view = read(VIEW);
  return view === 'table' || view === 'cards' ? view : null;
}

function readFolded(): string[] {
  try {
    const kept: unknown = JSON.parse(read(FOLDED) ?? '[]');
    return Array.isArray(kept) ? kept.filter((tag) => typeof tag === 'string') : [];
  } catch {
    return [];
  }
}

class Kept {
  #view = $state<View | null>(readView());
  #columns = $state.raw<readonly ColumnKey[] | null>(chosenColumns(read(COLUMNS)));
  #folded = $state.raw<readonly string[]>(readFolded());

  /** Null until somebody chooses one. */
  get view(): View | null {
    return this.#view;
  }

  set view(view: View | null) {
    this.#view = view;
    write(VIEW, view);
  }

  get columns(): readonly ColumnKey[] {
    return this.#columns ?? usualColumns;
  }

  get isUsual(): boolean {
    return this.#columns === null;
  }

  /** Shows a column, or no longer. */
  toggle(key: ColumnKey): void {
    const { columns } = this;
    this.#columns = columns.includes(key) ? columns.filter((one) => one !== key) : [...columns, key];
    write(COLUMNS, JSON.stringify(this.#columns));
  }

  /** Forgets the choice of columns. */
  reset(): void {
    this.#columns = null;
    write(COLUMNS, null);
  }

  /** Servers without a tag have the empty one. */
  isFolded(tag: string | null): boolean {
    return this.#folded.includes(tag ?? '');
  }

  fold(tag: string | null): void {
    const name = tag ?? '';
    const others = this.#folded.filter((one) => one !== name);
    this.#folded = others.length < this.#folded.length ? others : [...others, name].slice(-MAX_FOLDED);
    write(FOLDED, JSON.stringify(this.#folded));
  }
}

export const kept = new Kept();
