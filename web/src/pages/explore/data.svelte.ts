// What a chart of Explore, or a panel of a dashboard, shows: read from the service, and again as long as it is live.
import { untrack } from 'svelte';
import { api, take } from '../../api/client';
import { failureOf, type Failure } from '../../api/failure';
import type { Alert } from '../../api/types';
import { ChartGroup } from '../../charts/group.svelte';
import type { Mark } from '../../charts/marks';
import { spanOf, type Range, type Span } from '../../charts/ranges';
import { clock } from '../../live/clock.svelte';
import { fleet } from '../../live/fleet.svelte';
import { marksOfAlert } from '../server/overview/happenings';
import { drawn, NOTHING, type Drawn } from './lines';
import { series } from './series.svelte';
import type { Query } from './query';
import type { CombinedAnswer } from './types';

/** A chart that follows the present is read again after a point's worth of time: at least this often, and at most. */
const SOONEST_MS = 5_000;
const LATEST_MS = 60_000;
/** A failure is not answered by more questions at once. */
const AFTER_FAILURE_MS = 15_000;
/** More alerts than that are a grey field. */
const MOST_ALERTS = 200;

/** The messages of marks keep the names of their servers. */
const NO_SERVER = '\n';

const iso = (seconds: number) => new Date(Math.floor(seconds * 1000)).toISOString();

/** What the service is asked for a chart. */
export function questionOf(query: Query, span: Span, points: number) {
  return {
    names: query.series.join(','),
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
  marks = $state.raw<Mark[]>([]);
  /** When it was last read. */
  readAt = $state<number | null>(null);
  #query = $state.raw<Query | null>(null);
  #asked = 0;
  #again: (() => void) | null = null;

  constructor(show: (range: Range) => void, back: () => void) {
    this.group = new ChartGroup(show, back);
  }

  readonly drawn: Drawn = $derived.by(() => {
    const { answer } = this;
    const query = this.#query;
    return answer && query ? drawn(answer, query.by, series.unitOf) : NOTHING;
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
      const [answer, marks] = await Promise.all([
        take(api.GET('/api/v1/metrics/fleet/series', { params: { query: question } })),
        query.events ? readMarks(query, span) : [],
        series.know(query.series),
      ]);
      if (asked !== this.#asked) return;
      this.#query = query;
      this.answer = answer;
      this.marks = marks;
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

/** The alerts of the range as marks. A chart is of use without them. */
async function readMarks(query: Query, span: Span): Promise<Mark[]> {
  let alerts: Alert[];
  try {
    const only = query.servers.length === 1 ? { server_id: query.servers[0] as string } : {};
    const range = { since: iso(span.from), until: iso(span.to), limit: MOST_ALERTS, ...only };
    alerts = await take(api.GET('/api/v1/alerts', { params: { query: range } }));
  } catch {
    return [];
  }
  const chosen = new Set(query.servers);
  const isTagged = (id: string) => !query.tag || (fleet.row(id)?.server.tags.includes(query.tag) ?? true);
  return alerts
    .filter(({ server_id: id }) => (chosen.size === 0 || chosen.has(id)) && isTagged(id))
    .flatMap((alert) => marksOfAlert(alert, NO_SERVER))
    .filter((mark) => mark.at >= span.from && mark.at <= span.to);
}
