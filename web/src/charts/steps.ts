// The ranges that a page shows are entries of the browser's history, so that its Back leads to the range before.
import { clock } from '../live/clock.svelte';
import { router } from '../router/router.svelte';
import { queryOf, USUAL, type Range } from './ranges';

/** A range that is changed again so soon, as by a wheel that turns on, is the same step. */
const STEP_MS = 900;
const MOST_STEPS = 30;

interface Step {
  /** The query of the address that was left. */
  left: string;
  isRange: boolean;
}

export class Steps {
  readonly #usual: Range;
  #steps: Step[] = [];
  #steppedAt = -Infinity;

  /** `usual` is the range of an address that names none. */
  constructor(usual: Range = USUAL) {
    this.#usual = usual;
  }

  /** Shows another range. */
  show(range: Range): void {
    const isContinued = clock.present() - this.#steppedAt < STEP_MS;
    this.#steppedAt = clock.present();
    const address = router.with(queryOf(range, this.#usual));
    if (!isContinued) this.#leave(true);
    router.go(address, { replace: isContinued, keepScroll: true });
  }

  /** Opens something else on the page, which Back closes. */
  open(changes: Record<string, string | null>): void {
    this.#steppedAt = -Infinity;
    this.#leave(false);
    router.go(router.with(changes), { keepScroll: true });
  }

  /** Shows the range before, or the usual one. */
  back(): void {
    this.#steppedAt = -Infinity;
    const place = this.#steps.map((step) => step.isRange).lastIndexOf(true);
    if (place < 0) {
      router.set(queryOf(this.#usual, this.#usual));
      return;
    }
    const entries = this.#steps.length - place;
    this.#steps.length = place;
    history.go(-entries);
  }

  /** Another address is shown: by the browser's own Back, the page is a step before. */
  moved(): void {
    if (this.#steps.at(-1)?.left !== location.search) return;
    this.#steps.pop();
    this.#steppedAt = -Infinity;
  }

  #leave(isRange: boolean): void {
    this.#steps.push({ left: location.search, isRange });
    if (this.#steps.length > MOST_STEPS) this.#steps.shift();
  }
}
