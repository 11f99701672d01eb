// Lists that are sorted by what changes by itself. An element that is moved in the document loses the focus, so that nothing moves
// while the focus is in a row.

/** What is pressed next may stand in the list, and a press takes the focus away before it ends. */
const PRESS_MS = 300;

/** Those of before in their order, and then the others. */
export function inOrderOf<T>(before: readonly T[], items: readonly T[], keyOf: (item: T) => string): T[] {
  const places = new Map(before.map((item, place) => [keyOf(item), place]));
  const placeOf = (item: T) => places.get(keyOf(item)) ?? before.length;
  return [...items].sort((one, other) => placeOf(one) - placeOf(other));
}

/** The order of a list, which stays as it is while the focus is in one of its rows. */
export class Steady<T> {
  #releases = $state(0);
  #element: Element | null = null;
  #last: { how: string; order: T[] } = { how: '', order: [] };
  readonly #keyOf: (item: T) => string;
  readonly #row: string;

  /** `row`: what is a row, where the element has other things too. */
  constructor(keyOf: (item: T) => string, row = '*') {
    this.#keyOf = keyOf;
    this.#row = row;
  }

  /** The element that the rows stand in. Use it as an attachment. */
  readonly within = (element: Element): (() => void) => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const left = (event: Event) => {
      if (this.#has((event as FocusEvent).relatedTarget)) return;
      clearTimeout(timer);
      timer = setTimeout(() => (this.#releases += 1), PRESS_MS);
    };
    this.#element = element;
    element.addEventListener('focusout', left);
    return () => {
      clearTimeout(timer);
      element.removeEventListener('focusout', left);
      if (this.#element === element) this.#element = null;
    };
  };

  /** Whether the focus is in a row. */
  get isHeld(): boolean {
    void this.#releases;
    return this.#has(document.activeElement);
  }

  /**
   * Sorted items in the order in which they are shown. `how`: what somebody chose; another choice sorts them at once. `absent`: what
   * keeps the place of one that is no longer among them, if anything does.
   */
  order(items: readonly T[], how = '', absent: (item: T) => T | null = () => null): T[] {
    const isHeld = this.isHeld && how === this.#last.how;
    const order = isHeld ? this.#held(items, absent) : [...items];
    this.#last = { how, order };
    return order;
  }

  #held(items: readonly T[], absent: (item: T) => T | null): T[] {
    const before = this.#last.order;
    const present = new Set(items.map(this.#keyOf));
    const others = before.filter((item) => !present.has(this.#keyOf(item))).map(absent);
    return inOrderOf(before, [...items, ...others.filter((item) => item !== null)], this.#keyOf);
  }

  #has(target: EventTarget | null): boolean {
    return target instanceof Element && this.#element?.contains(target) === true && target.closest(this.#row) !== null;
  }
}
