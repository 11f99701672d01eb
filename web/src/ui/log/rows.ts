// Where rows of different heights lie, for a list of which only what is seen exists. Pure.
//
// Rows are a ring, as lines are, and their heights a Fenwick tree over it: adding one, measuring one, asking where one
// lies and which one lies at a place take some twenty steps, however many rows there are.

export class Rows {
  /** The oldest row and the next one. */
  first = 0;
  end = 0;
  readonly #capacity: number;
  readonly #numbers: Float64Array;
  readonly #heights: Float64Array;
  readonly #tree: Float64Array;
  readonly #top: number;
  #total = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
    this.#numbers = new Float64Array(capacity);
    this.#heights = new Float64Array(capacity);
    this.#tree = new Float64Array(capacity + 1);
    this.#top = 2 ** Math.floor(Math.log2(capacity));
  }

  get count(): number {
    return this.end - this.first;
  }

  /** The height of all. */
  get total(): number {
    return this.#total;
  }

  /** Adds a row that shows the line of this number. When full, the oldest row goes. */
  push(number: number, height: number): void {
    if (this.count === this.#capacity) this.#shift();
    const slot = this.end % this.#capacity;
    this.#numbers[slot] = number;
    this.end += 1;
    this.#set(slot, height);
  }

  /** Drops the rows that show lines before this number. */
  dropBefore(number: number): void {
    while (this.count > 0 && (this.#numbers[this.first % this.#capacity] ?? 0) < number) this.#shift();
  }

  /** The number of the line that a row shows. */
  number(row: number): number {
    return this.#numbers[row % this.#capacity] ?? 0;
  }

  height(row: number): number {
    return this.#heights[row % this.#capacity] ?? 0;
  }

  setHeight(row: number, height: number): void {
    if (row >= this.first && row < this.end) this.#set(row % this.#capacity, height);
  }

  /** Where a row begins, counted from the first. */
  top(row: number): number {
    if (row >= this.end) return this.#total;
    const start = this.first % this.#capacity;
    const slot = row % this.#capacity;
    const between = this.#before(slot) - this.#before(start);
    return slot >= start ? between : this.#before(this.#capacity) + between;
  }

  /** The row that lies at a place; the first or the last beyond the ends. */
  at(offset: number): number {
    if (this.count === 0) return this.first;
    const start = this.first % this.#capacity;
    const all = this.#before(this.#capacity);
    let target = this.#before(start) + Math.max(0, offset);
    let lap = 0;
    if (target >= all) [target, lap] = [target - all, this.#capacity];
    const slot = this.#find(target) + lap;
    return Math.min(this.end - 1, Math.max(this.first, this.first + slot - start));
  }

  /** The row of a line, or of the next one that is shown. */
  rowOf(number: number): number {
    let [low, high] = [this.first, this.end];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (this.number(middle) < number) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  clear(): void {
    this.first = this.end = this.#total = 0;
    this.#heights.fill(0);
    this.#tree.fill(0);
  }

  #shift(): void {
    this.#set(this.first % this.#capacity, 0);
    this.first += 1;
  }

  #set(slot: number, height: number): void {
    const change = height - (this.#heights[slot] ?? 0);
    if (change === 0) return;
    this.#heights[slot] = height;
    this.#total += change;
    for (let index = slot + 1; index <= this.#capacity; index += index & -index) {
      this.#tree[index] = (this.#tree[index] ?? 0) + change;
    }
  }

  /** The heights of the slots before this one. */
  #before(slot: number): number {
    let sum = 0;
    for (let index = slot; index > 0; index -= index & -index) sum += this.#tree[index] ?? 0;
    return sum;
  }

  /** The slot in which a place lies. */
  #find(offset: number): number {
    let slot = 0;
    let rest = offset;
    for (let step = this.#top; step >= 1; step /= 2) {
      const next = slot + step;
      const height = this.#tree[next] ?? 0;
      if (next <= this.#capacity && height <= rest) [slot, rest] = [next, rest - height];
    }
    return slot;
  }
}
