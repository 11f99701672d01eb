import type { Range, Span } from './ranges';

/** What the charts of a page share: the span that is shown, the cursor, and what is done to them. Times are seconds. */
export class ChartGroup {
  span = $state.raw<Span>({ from: 0, to: 1 });
  /** The time under the cursor; null while it is elsewhere. */
  cursor = $state<number | null>(null);
  /** A time that was clicked: it stays. */
  pinned = $state<number | null>(null);
  /** Which chart moves the cursor. */
  owner = $state.raw<symbol | null>(null);
  /** Shows another span. */
  readonly show: (range: Range) => void;
  /** Shows what was shown before. */
  readonly back: () => void;

  constructor(show: (range: Range) => void, back: () => void) {
    this.show = show;
    this.back = back;
  }

  /** The time that values are shown of; null for the newest. */
  get at(): number | null {
    return this.cursor ?? this.pinned;
  }

  pin(time: number | null): void {
    this.pinned = time;
  }
}
