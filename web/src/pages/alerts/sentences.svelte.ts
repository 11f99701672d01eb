// The sentences of alerts for the page that people see first: they are loaded with the first alert, which most visits have none of.
import type { Alert } from '../../api/types';
import { clock } from '../../live/clock.svelte';
import { loadPart } from '../../router/loading';

class Sentences {
  #part = $state.raw<typeof import('./sentence') | null>(null);
  #isAsked = false;

  /** The sentence of an alert now; empty until sentences are here. */
  of(alert: Alert): string {
    this.#load();
    return this.#part?.sentenceOf(alert, clock.now) ?? '';
  }

  #load(): void {
    if (this.#isAsked) return;
    this.#isAsked = true;
    // Without them, as when the service is away, the severity and the server still stand there.
    loadPart(() => import('./sentence')).then(
      (part) => (this.#part = part),
      () => (this.#isAsked = false),
    );
  }
}

export const sentences = new Sentences();
