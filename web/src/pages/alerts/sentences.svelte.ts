// The sentences of alerts for the page that people see first: they are loaded with the first alert, which most visits have none of.
import type { Alert } from '../../api/types';
import { clock } from '../../live/clock.svelte';
import { loadPart } from '../../router/loading';

class Sentences {
  #part = $state.raw<typeof import('./sentence') | null>(null);
  #isAsked = false;

  /** The sentence of an alert now; what the service said of it until sentences are here, so that no link is without words. */
  of(alert: Alert): string {
    this.#load();
    return this.#part?.sentenceOf(alert, clock.now) ?? alert.message;
  }

  #load(): void {
    if (this.#isAsked) return;
    this.#isAsked = true;
    loadPart(() => import('./sentence')).then(
      (part) => (this.#part = part),
      () => (this.#isAsked = false),
    );
  }
}

export const sentences = new Sentences();
