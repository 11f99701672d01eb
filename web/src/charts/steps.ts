// The ranges that a page shows are entries of the browser's history, so that its Back leads to the range before.
import { clock } from '../live/clock.svelte';
import { router } from '../router/router.svelte';
import type { Step } from '../router/steps';
import { queryOf, USUAL, type Range } from './ranges';

/** What is changed again so soon, as by a wheel that turns on, is the same step. */
const STEP_MS = 900;
/** Browsers keep no more entries. */
const MOST_STEPS = 50;

const RANGE = 'range';
const OPENED = 'opened';

type Changes = Record<string, string | null>;

export class Steps {
  readonly #usual: Range;
  #last = { what: '', at: -Infinity, count: 0 };
  /** What is being left: the browser goes back a moment after `history.go`. */
  #leaving: readonly Step[] | null = null;

  /** `usual` is the range of an address that names none. */
  constructor(usual: Range = USUAL) {
    this.#usual = usual;
  }

  /** Changes the address by an entry of its own; `what` tells the steps of a page apart. */
  step(what: string, changes: Changes): void {
    const before = Object.fromEntries(Object.keys(changes).map((name) => [name, router.query.get(name)]));
    this.#go(what, router.with(changes), before);
  }

  /** Shows another range. */
  show(range: Range): void {
    this.step(RANGE, queryOf(range, this.#usual));
  }

  /** Shows another range, as a step of its own, by an address that says more than it; `shown` is the range before. */
  showAt(address: string, shown: Range): void {
    this.#rest();
    this.#go(RANGE, address, queryOf(shown, this.#usual));
  }

  /** Opens something else on the page, which Back closes. */
  open(changes: Changes): void {
    this.#rest();
    this.step(OPENED, changes);
  }

  /** Takes the last step back, if it was such a one. */
  undo(what: string): boolean {
    if (router.steps.at(-1)?.what !== what) return false;
    this.#leave(1);
    return true;
  }

  /** Takes all steps of a kind back that were the last ones, if `isWanted` of what there was before them. */
  undoAll(what: string, isWanted: (before: Changes) => boolean): boolean {
    const others = router.steps.map((step) => step.what !== what).lastIndexOf(true);
    const first = router.steps[others + 1];
    if (!first || !isWanted(first.before)) return false;
    this.#leave(router.steps.length - others - 1);
    return true;
  }

  /** Shows the range before, or the usual one. */
  back(): void {
    if (!this.undoRange()) router.set(queryOf(this.#usual, this.#usual));
  }

  /** Shows the range before, if there was one. */
  undoRange(): boolean {
    const place = router.steps.map(({ what }) => what).lastIndexOf(RANGE);
    if (place < 0) return false;
    this.#leave(router.steps.length - place);
    return true;
  }

  #go(what: string, address: string, before: Changes): void {
    const now = clock.present();
    const { steps } = router;
    const last = steps.at(-1);
    const isContinued = last?.count === this.#last.count && this.#last.what === what && now - this.#last.at < STEP_MS;
    const came = new URL(address, location.origin).search;
    const step =
      last && isContinued
        ? { ...last, came }
        : { count: (last?.count ?? 0) + 1, what, left: location.search, came, before };
    this.#last = { what, at: now, count: step.count };
    const kept = isContinued ? steps.slice(0, -1) : steps.slice(1 - MOST_STEPS);
    router.go(address, { replace: isContinued, keepScroll: true, steps: [...kept, step] });
  }

  /** Goes back to where the page was before its last steps. */
  #leave(entries: number): void {
    this.#rest();
    if (this.#leaving === router.steps) return;
    this.#leaving = router.steps;
    history.go(-entries);
  }

  /** The next step is one of its own. */
  #rest(): void {
    this.#last = { what: '', at: -Infinity, count: 0 };
  }
}
