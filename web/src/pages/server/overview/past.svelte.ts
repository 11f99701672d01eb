// What the charts showed a day or a week before, where that is compared.
import { api, take } from '../../../api/client';
import { failureOf, type Failure } from '../../../api/failure';
import type { Span } from '../../../charts/ranges';
import { emptyTable, tableOf, type Table } from '../../../charts/series';
import { namesAsked } from '../../../lib/seriesNames';

/** Of a live range more is read than is shown yet: it need not be read again at once. */
const AHEAD = 0.25;

export class Past {
  table = $state.raw<Table>(emptyTable());
  failure = $state.raw<Failure | null>(null);
  readonly #id: string;
  #asked: AbortController | null = null;
  /** Until when, in the present's time, what was read lasts. */
  #until = Infinity;

  constructor(id: string) {
    this.#id = id;
  }

  /** Whether a live range has moved on beyond what was read. */
  isOver(now: number): boolean {
    return now > this.#until;
  }

  clear(): void {
    this.#asked?.abort();
    this.#asked = null;
    this.#until = Infinity;
    this.failure = null;
    if (this.table.times.length > 0) this.table = emptyTable();
  }

  /** Reads what lies `earlier` seconds before a span. */
  async load(
    span: Span,
    earlier: number,
    names: readonly string[],
    how: { live: boolean; points: number },
  ): Promise<void> {
    this.#asked?.abort();
    const asked = new AbortController();
    this.#asked = asked;
    const until = span.to + (how.live ? (span.to - span.from) * AHEAD : 0);
    this.#until = how.live ? until : Infinity;
    const time = (seconds: number) => new Date((seconds - earlier) * 1000).toISOString();
    const query = { start: time(span.from), end: time(until), names: namesAsked(names), max_points: how.points };
    const params = { path: { server_id: this.#id }, query };
    try {
      const given = await take(api.GET('/api/v1/metrics/{server_id}/series', { params, signal: asked.signal }));
      if (this.#asked !== asked) return;
      this.table = tableOf(given);
      this.failure = null;
    } catch (error) {
      if (this.#asked === asked) this.failure = failureOf(error);
    }
  }
}
