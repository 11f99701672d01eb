// The alerts and the kept events of a span, as marks on the time axis of charts.
import { api, take } from '../api/client';
import type { Alert, StoredEvent } from '../api/types';
import type { Mark } from '../charts/marks';
import type { Span } from '../charts/ranges';
import { marksOfAlert, marksOfStored, marksWithin } from '../pages/server/overview/happenings';

/** More of a kind are a grey field. */
const MOST_ALERTS = 200;
const MOST_EVENTS = 500;

export interface Occurrences {
  alerts: readonly Alert[];
  events: readonly StoredEvent[];
}

export const NO_OCCURRENCES: Occurrences = { alerts: [], events: [] };

/**
 * Reads what happened on a server, or on all of them, since a time until another one or now: the newest alone where there is more.
 * `/events` takes one `kind`, so what a chart leaves out, such as containers that come and go, counts, too. Charts are of use
 * without it.
 */
export async function readOccurrences(
  serverId: string | null,
  start: string,
  end: string | null,
  signal?: AbortSignal,
): Promise<Occurrences> {
  const aborted = signal ? { signal } : {};
  const ofAlerts = {
    since: start,
    limit: MOST_ALERTS,
    ...(end ? { until: end } : {}),
    ...(serverId ? { server_id: serverId } : {}),
  };
  const ofEvents = { start, limit: MOST_EVENTS, ...(end ? { end } : {}) };
  const readEvents = () =>
    serverId
      ? take(
          api.GET('/api/v1/servers/{id}/events', {
            params: { path: { id: serverId }, query: ofEvents },
            ...aborted,
          }),
        )
      : take(api.GET('/api/v1/events', { params: { query: ofEvents }, ...aborted }));
  const [alerts, events] = await Promise.all([
    take(api.GET('/api/v1/alerts', { params: { query: ofAlerts }, ...aborted })).catch((): Alert[] => []),
    readEvents().catch((): StoredEvent[] => []),
  ]);
  return { alerts, events };
}

/** The marks of a server whose name is `name`, for the account with the id `me`. */
export function marksOfServer(
  { alerts, events }: Occurrences,
  { from, to }: Span,
  name: string,
  me: string | undefined,
): Mark[] {
  const marks = [
    ...alerts.flatMap((alert) => marksOfAlert(alert, name)),
    ...events.flatMap((event) => marksOfStored(event, me)),
  ];
  return marksWithin(marks, from, to);
}
