// The names of series, read once and shared: for the list to choose from, and for the units of open series.
import { api, take } from '../../api/client';
import { unitOfTyped } from '../../charts/metrics';
import type { Unit } from '../../charts/units';
import { Loaded } from '../../ui/form.svelte';
import { parts } from './lines';
import { choicesOf, type Choice } from './names';

class SeriesNames {
  readonly #names = new Loaded(() => take(api.GET('/api/v1/metrics/fleet/names', { params: { query: {} } })));
  readonly choices: Choice[] = $derived(choicesOf(this.#names.value?.names ?? []));
  readonly #units = $derived(new Map(this.choices.map(({ base, unit }) => [base, unit])));
  /** What each is described as, by the part of its name before the colon. */
  readonly described = $derived(
    new Map((this.#names.value?.names ?? []).map(({ name, unit, kind }) => [parts(name)[0], { unit, kind }])),
  );
  #reading: Promise<void> | null = null;

  get isKnown(): boolean {
    return this.#names.value !== undefined;
  }

  get failure() {
    return this.#names.failure;
  }

  /** Reads the names again. */
  load(): Promise<void> {
    this.#reading ??= this.#names.load().finally(() => (this.#reading = null));
    return this.#reading;
  }

  /** Makes sure that the units of these series are known, as far as the service knows them. */
  async know(names: readonly string[]): Promise<void> {
    if (this.isKnown || names.every((name) => unitOfTyped(parts(name)[0]) !== null)) return;
    await this.load();
  }

  readonly unitOf = (name: string): Unit => {
    const [base] = parts(name);
    return unitOfTyped(base) ?? this.#units.get(base) ?? 'count';
  };
}

export const series = new SeriesNames();
