// The ranges that a page shows are entries of the browser's history, so that its Back leads to the range before.
import { clock } from '../live/clock.svelte';
import { router } from '../router/router.svelte';
import { queryOf, USUAL, type Range } from './ranges';

/** What is changed again so soon, as by a wheel that turns on, is the same step. */
const STEP_MS = 900;
const MOST_STEPS = 30;

const RANGE = 'range';
const OPENED = 'opened';

interface Step {
  /** The query of the address that was left. */
  left: string;
  what: string;
}

export class Steps {
  readonly #usual: Range;
  #steps: Step[] = [];
  #last = { what: '', at: -Infinity };

  /** `usual` is the range of an address that names none. */
  constructor(usual: Range = USUAL) {
    this.#usual = usual;
  }

  /** Changes the address by an entry of its own; `what` tells the steps of a page apart. */
  step(what: string, changes: Record<string, string | null>): void {
    const now = clock.present();
    const isContinued = this.#last.what === what && now - this.#last.at < STEP_MS;
    this.#last = { what, at: now };
    if (!isContinued) this.#steps.push({ left: location.search, what });
    if (this.#steps.length > MOST_STEPS) this.#steps.shift();
    router.go(router.with(changes), { replace: isContinued, keepScroll: true });
  }

  /** Takes the last step back, if it was such a one. */
  undo(what: string): boolean {
    if (this.#steps.at(-1)?.what !== what) return false;
    this.#leave(this.#steps.length - 1);
    return true;
  }

  /** Shows another range. */
  show(range: Range): void {
    this.step(RANGE, queryOf(range, this.#usual));
  }

  /** Opens something else on the page, which Back closes. */
  open(changes: Record<string, string | null>): void {
    this.#rest();
    this.step(OPENED, changes);
  }

  /** Shows the range before, or the usual one. */
  back(): void {
    const place = this.#steps.map(({ what }) => what).lastIndexOf(RANGE);
    if (place >= 0) this.#leave(place);
    else router.set(queryOf(this.#usual, this.#usual));
  }

  /** Another address is shown: by the browser's own Back, the page is a step before. */
  moved(): void {
    if (this.#steps.at(-1)?.left !== location.search) return;
    this.#steps.pop();
    this.#rest();
  }

  /** Goes back to where the page was before a step. */
  #leave(place: number): void {
    const entries = this.#steps.length - place;
    this.#steps.length = place;
    this.#rest();
    history.go(-entries);
  }

  /** The next step is one of its own. */
  #rest(): void {
    this.#last = { what: '', at: -Infinity };
  }
}
