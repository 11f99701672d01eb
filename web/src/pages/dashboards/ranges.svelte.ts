// The times that the views of a dashboard show, as the address has them: the range of all, and what each is zoomed to.
import type { Range } from '../../charts/ranges';
import { Steps } from '../../charts/steps';
import { router } from '../../router/router.svelte';
import { rangeOfWords } from '../explore/query';
import { zoomed, zoomsOf } from './zooms';

export class Ranges {
  readonly #steps = new Steps();
  readonly #kept: () => string | null;

  /** `kept`: the range that the dashboard keeps. */
  constructor(kept: () => string | null) {
    this.#kept = kept;
  }

  /** The range of all views, as the address has it or the dashboard keeps it; empty where each has its own. */
  readonly key: string = $derived.by(() => router.query.get('range') ?? this.#kept() ?? '');

  readonly range = $derived(rangeOfWords(this.key || null));

  // What a view is zoomed to is in the address, too, each step an entry of the browser's history.
  readonly zooms = $derived(zoomsOf(router.query));

  zoom(key: string, next: Range): void {
    this.#steps.step(key, { zoom: zoomed(this.zooms, key, next) });
  }

  /** Shows what a view showed before. */
  back(key: string): void {
    if (!this.#steps.undo(key)) router.set({ zoom: zoomed(this.zooms, key, null) });
  }

  /** Shows the range that a view had before anybody zoomed in it. */
  reset(key: string): void {
    const isOwn = ({ zoom }: Record<string, string | null>) =>
      !zoomsOf(new URLSearchParams({ zoom: zoom ?? '' })).has(key);
    if (!this.#steps.undoAll(key, isOwn)) router.set({ zoom: zoomed(this.zooms, key, null) });
  }
}
