import { api, take, takePage } from '../../../api/client';
import { failureOf, type Failure } from '../../../api/failure';
import type { Mark } from '../../../charts/marks';
import { isSame, spanOf, type Range, type Span } from '../../../charts/ranges';
import { addressOf } from '../tabs';
import { session } from '../../../session/session.svelte';
import type { ServerView } from '../view.svelte';
import { clock } from '../../../live/clock.svelte';
import {
  isNoted,
  markOfBoot,
  marksOfAlert,
  marksOfAudit,
  marksOfEvent,
  marksOfStored,
  marksWithin,
  withIdsOf,
} from './happenings';

/** So many of a kind are read: more marks than that hide the lines. */
const MOST = 200;

/** What happened within the span that is shown. */
export class Happenings {
  failure = $state.raw<Failure | null>(null);
  #read = $state.raw<Mark[]>([]);
  /** When that was: what came before is in it. */
  #readAt = $state(0);
  /** Of which range. */
  #readOf = $state.raw<Range | null>(null);
  readonly #view: ServerView;
  #asked = 0;

  constructor(view: ServerView) {
    this.#view = view;
  }

  /** All that is known, of any time. */
  readonly known = $derived.by((): Mark[] => {
    const { latest, events, server } = this.#view;
    const boot = latest ? markOfBoot(Date.parse(latest.timestamp) / 1000, latest.uptime_seconds) : null;
    // The service keeps what it sent since, too, and the next reading has it.
    const fresh = events.filter((event) => event.kind !== 'status' || event.at > this.#readAt);
    return [
      ...this.#read,
      ...this.#view.openAlerts.flatMap((alert) => marksOfAlert(alert, server.name)),
      ...fresh.flatMap(marksOfEvent),
      ...(boot && !isNoted(boot, this.#read) ? [boot] : []),
    ];
  });

  within(span: Span): Mark[] {
    return marksWithin(this.known, span.from, span.to);
  }

  /** Whether what happened in this range has been read. */
  covers(range: Range): boolean {
    return this.#readOf !== null && isSame(this.#readOf, range);
  }

  /** Reads what happened in a range; `now` is in seconds. */
  async load(range: Range, now: number): Promise<void> {
    const asked = ++this.#asked;
    const server_id = this.#view.id;
    const span = spanOf(range, now);
    const since = new Date(span.from * 1000).toISOString();
    const end = range.kind === 'live' ? null : new Date(span.to * 1000).toISOString();
    const until = end ? { until: end } : {};
    const within = { start: since, ...(end ? { end } : {}), limit: MOST };
    try {
      const began = clock.present();
      const [page, entries, stored] = await Promise.all([
        takePage(api.GET('/api/v1/alerts', { params: { query: { server_id, since, ...until, limit: MOST } } })),
        take(api.GET('/api/v1/audit', { params: { query: { server_id, since, ...until, limit: MOST } } })),
        take(api.GET('/api/v1/servers/{id}/events', { params: { path: { id: server_id }, query: within } })),
      ]);
      if (asked !== this.#asked) return;
      const { name } = this.#view.server;
      // From now on what was kept stands in place of these.
      const shown = this.#view.events.filter(({ kind, at }) => kind === 'status' && at <= began).flatMap(marksOfEvent);
      this.#read = [
        ...page.items.flatMap((alert) => marksOfAlert(alert, name)),
        ...marksOfAudit(entries, addressOf(server_id, '')),
        ...withIdsOf(
          shown,
          stored.flatMap((event) => marksOfStored(event, session.user?.id)),
        ),
      ];
      this.#readAt = began;
      this.#readOf = range;
      this.failure = null;
    } catch (error) {
      if (asked === this.#asked) this.failure = failureOf(error);
    }
  }
}
