// What happened on all servers around a time, from wherever it is known, as one list. Pure.
import * as m from '#messages/moment';
import type { Alert, AuditEntry, StoredEvent } from '../api/types';
import type { Tone } from '../charts/colours';
import type { Mark } from '../charts/marks';
import { outcomeWords, wordsOf } from '../pages/account/audit/words';
import { containerNames, marksOfAlert, marksOfStored } from '../pages/server/overview/happenings';
import { addressOf } from '../pages/server/tabs';
import type { IconName } from '../ui/icons';

export interface Happening {
  id: string;
  /** Seconds. */
  at: number;
  icon: IconName;
  tone: Tone;
  title: string;
  /** A command, as it was written. */
  code?: string;
  /** Who did it, and what came of it. */
  by?: string;
  href?: string;
  /** The stored event, of what people wrote: it can be deleted. */
  eventId?: string;
  /** Null of what is about no server, such as a sign-in. */
  serverId: string | null;
  /** Somebody came: beside a server's own events, it says who may have acted there. */
  isSignIn?: boolean;
}

const ICONS: Record<Mark['kind'], IconName> = {
  alert: 'bell',
  restart: 'refresh',
  container: 'box',
  agent: 'activity',
  command: 'terminal',
  action: 'user',
  deploy: 'send',
  note: 'tag',
};

function ofMark(mark: Mark, serverId: string): Happening {
  const { id, at, kind, tone, title, href, by, eventId } = mark;
  return {
    id: `${serverId} ${id}`,
    at,
    icon: ICONS[kind],
    tone,
    title,
    serverId,
    ...(href ? { href } : {}),
    ...(by ? { by } : {}),
    ...(eventId ? { eventId } : {}),
  };
}

const ACTION_ICONS: [beginning: string, icon: IconName][] = [
  ['command.', 'terminal'],
  ['batch.', 'terminal'],
  ['terminal.', 'terminal'],
  ['container.', 'box'],
  ['log', 'key'],
  ['session.', 'key'],
  ['password.', 'key'],
  ['api_key.', 'key'],
  ['server.', 'server'],
  ['alert.', 'bell'],
  ['threshold.', 'bell'],
  ['silence.', 'bell'],
];

const keyOf = (entry: AuditEntry) => `${entry.action} ${entry.target ?? ''}`;

/** What people did. What takes a while has two entries: its start stands for both. */
export function ofAudit(entries: readonly AuditEntry[]): Happening[] {
  const started = new Set(entries.filter((entry) => entry.outcome === 'started').map(keyOf));
  const shown = entries.filter((entry) => entry.outcome === 'started' || !entry.target || !started.has(keyOf(entry)));
  const names = containerNames(entries);
  return shown.map((entry): Happening => {
    const container = entry.action.startsWith('container.') ? names.get(entry.target ?? '') : undefined;
    const { did, quote } = wordsOf(container ? { ...entry, detail: { ...entry.detail, name: container } } : entry);
    const title = did.map((part) => (typeof part === 'string' ? part : part[1])).join('');
    const isDone = entry.outcome === 'ok' || entry.outcome === 'started';
    const by = entry.address ? m.byFrom({ user: entry.username, address: entry.address }) : entry.username;
    const isCommand = entry.action === 'command.run' && entry.server_id && entry.target;
    return {
      id: `audit:${entry.seq}`,
      at: Date.parse(entry.at) / 1000,
      icon: ACTION_ICONS.find(([beginning]) => entry.action.startsWith(beginning))?.[1] ?? 'user',
      tone: isDone ? 'accent' : 'warn',
      title: title.charAt(0).toUpperCase() + title.slice(1),
      by: isDone ? by : m.withOutcome({ by, outcome: outcomeWords(entry.outcome).label }),
      serverId: entry.server_id ?? null,
      ...(quote ? { code: quote } : {}),
      ...(entry.action === 'login' ? { isSignIn: true } : {}),
      ...(isCommand ? { href: `${addressOf(entry.server_id ?? '', 'commands')}?command=${entry.target}` } : {}),
    };
  });
}

export interface Sources {
  alerts: readonly Alert[];
  entries: readonly AuditEntry[];
  events: readonly StoredEvent[];
}

/** Whether there may be more than what was read: at most `most` of each kind, the newest, are. */
export function isCut({ alerts, entries, events }: Sources, most: number): boolean {
  return [alerts, entries, events].some((all) => all.length >= most);
}

/** What says itself what became of it: an alert, a deploy, a note. */
const isShown = ({ action }: AuditEntry) =>
  action === 'alert.note' || !(action.startsWith('alert.') || action === 'event.create');

/** Everything within a span, the oldest first, each once, for the account with the id `me`. */
export function happened(
  { alerts, entries, events }: Sources,
  nameOf: (id: string) => string | undefined,
  { from, to }: { from: number; to: number },
  me?: string,
): Happening[] {
  const all = [
    ...alerts.flatMap((alert) =>
      marksOfAlert(alert, nameOf(alert.server_id) ?? alert.server_id).map((mark) => ofMark(mark, alert.server_id)),
    ),
    ...events.flatMap((event) => marksOfStored(event, me).map((mark) => ofMark(mark, event.server_id))),
    ...ofAudit(entries.filter(isShown)),
  ];
  const seen = new Set<string>();
  return all
    .filter((one) => one.at >= from && one.at <= to && !seen.has(one.id) && seen.add(one.id))
    .sort((one, other) => one.at - other.at);
}

/** Of one server, with the sign-ins, or of all. What else is about no server has nothing to do with one. */
export function scoped(all: readonly Happening[], serverId: string | null): Happening[] {
  return all.filter((one) => serverId === null || one.serverId === serverId || (one.serverId === null && one.isSignIn));
}
