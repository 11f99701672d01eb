// Lines that continue others, folded after the first few: a stack trace takes the room of four lines. Pure.
import { Groups } from './group';
import type { Line, Lines } from './lines';

/** So many of the lines that continue one are always shown. */
export const SHOWN_OF_GROUP = 3;

interface Group {
  /** How many lines continue its head. */
  count: number;
  /** The last one that is always shown, below which the others are folded. */
  foldAt: number;
  isOpen: boolean;
}

export class Folds {
  readonly #lines: Lines;
  readonly #heads: Float64Array;
  /** Which of the lines of its group a line is: 0 for its head. */
  readonly #places: Uint16Array;
  readonly #groups = new Map<number, Group>();
  readonly #finder = new Groups();

  constructor(lines: Lines) {
    this.#lines = lines;
    this.#heads = new Float64Array(lines.capacity);
    this.#places = new Uint16Array(lines.capacity);
  }

  /** A line that came. */
  push(number: number, line: Line): void {
    const head = this.#finder.headOf(number, line);
    const slot = number % this.#lines.capacity;
    this.#heads[slot] = head;
    this.#places[slot] = 0;
    if (head === number) return;
    const group = this.#groups.get(head) ?? { count: 0, foldAt: number, isOpen: false };
    group.count += 1;
    this.#places[slot] = group.count;
    if (group.count <= SHOWN_OF_GROUP) group.foldAt = number;
    this.#groups.set(head, group);
  }

  /** The number of the line that this one continues; its own for one that continues none. */
  headOf(number: number): number {
    return this.#heads[number % this.#lines.capacity] ?? number;
  }

  /** What is folded below a line. */
  at(number: number): { count: number; isOpen: boolean } | null {
    if (this.#places[number % this.#lines.capacity] !== SHOWN_OF_GROUP) return null;
    const group = this.#groups.get(this.headOf(number));
    if (!group || group.foldAt !== number || group.count <= SHOWN_OF_GROUP) return null;
    return { count: group.count - SHOWN_OF_GROUP, isOpen: group.isOpen };
  }

  isHidden(number: number): boolean {
    const place = this.#places[number % this.#lines.capacity] ?? 0;
    const group = place > SHOWN_OF_GROUP ? this.#groups.get(this.headOf(number)) : undefined;
    return group !== undefined && !group.isOpen;
  }

  toggle(number: number): void {
    const group = this.#groups.get(this.headOf(number));
    if (group) group.isOpen = !group.isOpen;
  }

  /** The numbers of a line and of all that continues it. */
  group(number: number): number[] {
    const count = this.#groups.get(number)?.count ?? 0;
    const found = [number];
    for (let next = number + 1; found.length <= count && next < this.#lines.end; next += 1)
      if (this.headOf(next) === number) found.push(next);
    return found;
  }

  /** The log dropped lines. */
  trimmed(): void {
    // A group whose head is gone is held while some of its lines are.
    for (const [head, group] of this.#groups) {
      if (head >= this.#lines.first) return;
      if (group.foldAt < this.#lines.first) this.#groups.delete(head);
    }
  }

  clear(): void {
    this.#groups.clear();
    this.#finder.clear();
  }
}
