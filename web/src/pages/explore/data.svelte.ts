// What a chart of Explore, or a panel of a dashboard, shows: read from the service, and again as long as it is live.
import { untrack } from 'svelte';
import { api, take } from '../../api/client';
import { failureOf, type Failure } from '../../api/failure';
import { ChartGroup } from '../../charts/group.svelte';
import type { Mark } from '../../charts/marks';
import { spanOf, type Range, type Span } from '../../charts/ranges';
import { namesAsked } from '../../lib/seriesNames';
import { clock } from '../../live/clock.svelte';
import { fleet } from '../../live/fleet.svelte';
import { NO_OCCURRENCES, type Occurrences } from '../../moment/marks';
import { session } from '../../session/session.svelte';
import { drawn, inPlaces, NOTHING, type Drawn } from './lines';
import { marksOf, readAround } from './marks';
import { series } from './series.svelte';
import type { Query } from './query';
import type { CombinedAnswer } from './types';

/** A chart that follows the present is read again after a point's worth of time: at least this often, and at most. */
const SOONEST_MS = 5_000;
const LATEST_MS = 60_000;
/** A failure is not answered by more questions at once. */
const AFTER_FAILURE_MS = 15_000;

const iso = (seconds: number) => new Date(Math.floor(seconds * 1000)).toISOString();

/** What the service is asked for a chart. */
export function questionOf(query: Query, span: Span, points: number) {
  return {
    names: namesAsked(query.series),
    ...(query.servers.length > 0 ? { server: query.servers.join(',') } : {}),
    ...(query.tag ? { tag: query.tag } : {}),
    by: query.by,
    function: query.fn,
    top: query.top,
    rank: query.rank,
    start: iso(span.from),
    end: iso(span.to),
    max_points: points,
  };
}

export class ViewData {
  readonly group: ChartGroup;
  answer = $state.raw<CombinedAnswer | null>(null);
  failure = $state.raw<Failure | null>(null);
  busy = $state(false);
  /** When it was last read. */
  readAt = $state<number | null>(null);
  #query = $state.raw<Query | null>(null);
  #occurrences = $state.raw<Occurrences>(NO_OCCURRENCES);
  #asked = 0;
  #again: (() => void) | null = null;

  constructor(show: (range: Range) => void, back: () => void) {
    this.group = new ChartGroup(show, back);
  }

  /** What the answer is of. */
  readonly asked = $derived(JSON.stringify(this.#query));

  readonly drawn: Drawn = $derived.by(() => {
    const { answer } = this;
    const query = this.#query;
    return answer && query ? drawn(answer, query.by, series.unitOf) : NOTHING;
  });

  /** What happened in the range. The names of the servers may come later. */
  readonly marks: Mark[] = $derived.by(() => {
    const query = this.#query;
    if (!query) return [];
    const serverOf = fleet.isKnown ? (id: string) => fleet.row(id)?.server : null;
    return marksOf(this.#occurrences, query, this.group.span, serverOf, session.user?.id);
  });

  /** Shows a chart, until what it gives is called. */
  follow(query: Query, points: number): () => void {
    return untrack(() => {
      let timer: ReturnType<typeof setTimeout> | undefined;
      // Only the latest turn is followed by another one.
      let latest = 0;
      const turn = async () => {
        const mine = ++latest;
        clearTimeout(timer);
        // Nobody sees a hidden page; it is read as soon as it is shown.
        if (!document.hidden) await this.#read(query, points);
        if (mine !== latest || query.range.kind === 'fixed') return;
        const pace = (query.range.seconds * 1000) / points;
        const wait = this.failure ? AFTER_FAILURE_MS : Math.min(LATEST_MS, Math.max(SOONEST_MS, pace));
        timer = setTimeout(turn, wait);
      };
      const seen = () => {
        if (!document.hidden) void turn();
      };
      this.#again = () => void turn();
      document.addEventListener('visibilitychange', seen);
      void turn();
      return () => {
        latest += 1;
        this.#asked += 1;
        this.#again = null;
        clearTimeout(timer);
        document.removeEventListener('visibilitychange', seen);
      };
    });
  }

  /** Reads it again now. */
  again(): void {
    this.#again?.();
  }

  async #read(query: Query, points: number): Promise<void> {
    const asked = ++this.#asked;
    const span = spanOf(query.range, clock.present() / 1000);
    this.busy = true;
    try {
      const question = questionOf(query, span, points);
      const [answer, occurrences] = await Promise.all([
        take(api.GET('/api/v1/metrics/fleet/series', { params: { query: question } })),
        query.events ? readAround(query, span) : NO_OCCURRENCES,
        series.know(query.series),
      ]);
      if (asked !== this.#asked) return;
      // What ranks first changes by itself. Lines keep their places, and with them their colours, where others take the places of
      // those that leave. Where fewer come, or lines of another unit, which are in another chart, later lines do move.
      const before = JSON.stringify(query) === this.asked ? (this.answer?.lines ?? []) : [];
      this.#query = query;
      this.answer = { ...answer, lines: inPlaces(before, answer.lines) };
      this.#occurrences = occurrences;
      this.group.span = span;
      this.failure = null;
      this.readAt = clock.present();
    } catch (error) {
      if (asked === this.#asked) this.failure = failureOf(error);
    } finally {
      if (asked === this.#asked) this.busy = false;
    }
  }
}
