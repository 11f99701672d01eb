// What happened to the servers of a chart, as marks on its time axis.
import * as m from '#messages/explore';
import type { StoredEvent } from '../../api/types';
import type { Mark } from '../../charts/marks';
import { textOf, type Span } from '../../charts/ranges';
import { clock } from '../../live/clock.svelte';
import { readOccurrences, type Occurrences } from '../../moment/marks';
import { session } from '../../session/session.svelte';
import { marksOfAlert, marksOfStored, marksWithin } from '../server/overview/happenings';
import type { Query } from './query';

/** The views of a dashboard ask at the same time: what was read so long before is shared. */
const SHARED_MS = 4_000;
/** Ranges up to now that begin within so many seconds have the same events. */
const GRAIN = 10;

interface Named {
  name: string;
  tags: readonly string[];
}

let shared: { key: string; at: number; read: Promise<Occurrences> } | null = null;

/** Reads what happened in the span of a chart. */
export function readAround(query: Query, span: Span): Promise<Occurrences> {
  const isLive = query.range.kind === 'live';
  const start = textOf(isLive ? Math.floor(span.from / GRAIN) * GRAIN : span.from);
  const end = isLive ? null : textOf(span.to);
  const [only = null, ...others] = query.servers;
  const serverId = others.length === 0 ? only : null;
  const key = [session.user?.id, serverId, start, end].join(' ');
  const now = clock.present();
  if (shared?.key !== key || now - shared.at > SHARED_MS)
    shared = { key, at: now, read: readOccurrences(serverId, start, end) };
  return shared.read;
}

/**
 * Containers come and go: on a chart of several servers they would hide everything else. They are left out once they were read,
 * and many of them leave no place for what is older.
 */
const isRoutine = ({ kind, detail }: StoredEvent) => kind === 'container' && detail.action !== 'oom';

/**
 * The marks of the servers that a chart is of, for the account with the id `me`. Those of several servers name theirs. `serverOf` is
 * null until the servers are known: those of a tag have their marks then.
 */
export function marksOf(
  { alerts, events }: Occurrences,
  { servers, tag }: Pick<Query, 'servers' | 'tag'>,
  { from, to }: Span,
  serverOf: ((id: string) => Named | undefined) | null,
  me: string | undefined,
): Mark[] {
  const chosen = new Set(servers);
  const nameOf = (id: string) => (serverOf ? (serverOf(id)?.name ?? m.gone()) : '…');
  const isTagged = (id: string) => !tag || (serverOf !== null && (serverOf(id)?.tags.includes(tag) ?? true));
  const isShown = ({ server_id: id }: { server_id: string }) => (chosen.size === 0 || chosen.has(id)) && isTagged(id);
  const isAlone = chosen.size === 1;
  const named = (mark: Mark, id: string): Mark => ({
    ...mark,
    id: `${id} ${mark.id}`,
    title: m.eventOn({ server: nameOf(id), event: mark.title }),
  });
  const ofEvents = events
    .filter((event) => isShown(event) && (isAlone || !isRoutine(event)))
    .flatMap((event) => marksOfStored(event, me).map((mark) => (isAlone ? mark : named(mark, event.server_id))));
  const ofAlerts = alerts
    .filter(isShown)
    .flatMap((alert) =>
      marksOfAlert(alert, nameOf(alert.server_id)).map((mark) => (isAlone ? mark : named(mark, alert.server_id))),
    );
  return marksWithin([...ofAlerts, ...ofEvents], from, to);
}
