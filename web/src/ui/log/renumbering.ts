// The numbers that lines get when others take the place of those held: most of them are the same ones, in another order. Pure.
import type { Line, Lines } from './lines';

export class Renumbering {
  readonly #held: readonly Line[];
  readonly #first: number;
  readonly #end: number;
  readonly #numbers: ReadonlyMap<Line, number>;

  /** Made before `held` is cleared, after which its numbers continue with the lines `next`. */
  constructor(held: Lines, next: readonly Line[]) {
    this.#held = [...held.between(held.first, held.end)];
    this.#first = held.first;
    this.#end = held.end + next.length;
    this.#numbers = new Map(next.map((line, index) => [line, held.end + index]));
  }

  /** The new number of a line; null where the line is gone. */
  of(number: number): number | null {
    const line = this.#held[number - this.#first];
    return (line && this.#numbers.get(line)) ?? null;
  }

  /** The new numbers of those lines that are still there. */
  ofAll(numbers: Iterable<number>): number[] {
    return [...numbers].flatMap((number) => this.of(number) ?? []);
  }

  /** The new number of a line, or of the next one that is still there; of the end where there is none. */
  near(number: number): number {
    for (let next = Math.max(number, this.#first); next < this.#first + this.#held.length; next += 1) {
      const found = this.of(next);
      if (found !== null) return found;
    }
    return this.#end;
  }
}
