// What happened to a server, from wherever it is known, as marks on the charts.
import type { Alert, AuditEntry, StoredEvent } from '../../../api/types';
import type { Tone } from '../../../charts/colours';
import type { Mark } from '../../../charts/marks';
import { messageOf } from '../../../lib/message';
import { severityTone } from '../../alerts/severity';
import type { ServerEvent } from '../view.svelte';

const seconds = (time: string) => Date.parse(time) / 1000;

/** When an alert was raised, and when it ended. */
export function marksOfAlert(alert: Alert, server: string): Mark[] {
  // Whose page it is needs no saying, and what ran then stands beside the charts.
  const message = messageOf(alert)
    .replace(` on ${server}`, '')
    .replace(/ \(top: .*\)$/, '');
  const href = `/alerts/${alert.id}`;
  const marks: Mark[] = [
    {
      id: `alert:${alert.id}`,
      at: seconds(alert.triggered_at),
      kind: 'alert',
      tone: severityTone(alert.severity),
      title: message,
      detail: alert.severity,
      href,
    },
  ];
  if (alert.resolved_at) {
    marks.push({
      id: `resolved:${alert.id}`,
      at: seconds(alert.resolved_at),
      kind: 'alert',
      tone: 'ok',
      title: `Resolved: ${message}`,
      href,
    });
  }
  return marks;
}

const ACTIONS: Record<string, string> = {
  'command.run': 'ran a command',
  'terminal.open': 'opened a terminal',
  'container.start': 'started a container',
  'container.stop': 'stopped a container',
  'container.restart': 'restarted a container',
  'container.pause': 'paused a container',
  'container.unpause': 'went on with a container',
};

/** What somebody did to the machine. What changes nothing there is none. */
export function marksOfAudit(entries: AuditEntry[], address: string): Mark[] {
  // What takes a while has two entries, which may lie on two pages: the start, when it is there, stands for both.
  const started = new Set(entries.filter((entry) => entry.outcome === 'started').map(keyOf));
  return entries.flatMap((entry): Mark[] => {
    const what = ACTIONS[entry.action];
    if (!what || (entry.outcome !== 'started' && entry.target && started.has(keyOf(entry)))) return [];
    const isCommand = entry.action === 'command.run';
    const text = isCommand && typeof entry.detail.command === 'string' ? entry.detail.command : undefined;
    const href = isCommand && entry.target ? { href: `${address}/commands?command=${entry.target}` } : {};
    const detail = text ? { detail: text } : {};
    const isRefused = entry.outcome !== 'started' && entry.outcome !== 'ok';
    return [
      {
        id: `audit:${entry.seq}`,
        at: seconds(entry.at),
        kind: isCommand || entry.action === 'terminal.open' ? 'command' : 'action',
        tone: isRefused ? 'warn' : 'accent',
        title: `${entry.username} ${what}${isRefused ? ` (${entry.outcome})` : ''}`,
        ...detail,
        ...href,
      },
    ];
  });
}

const keyOf = (entry: AuditEntry) => `${entry.action} ${entry.target ?? ''}`;

const CONTAINER: Record<string, { word: string; tone: Tone }> = {
  start: { word: 'started', tone: 'ok' },
  die: { word: 'ended', tone: 'warn' },
  oom: { word: 'ran out of memory', tone: 'bad' },
  health_status: { word: 'has another health', tone: 'idle' },
  restart: { word: 'was restarted', tone: 'accent' },
  pause: { word: 'was paused', tone: 'idle' },
  unpause: { word: 'goes on', tone: 'ok' },
  destroy: { word: 'was removed', tone: 'idle' },
};

/** What the agent told. A stop is told by its end as well, and a list of states is no news. */
export function marksOfEvent(event: ServerEvent): Mark[] {
  if (event.kind === 'status') {
    const isHere = event.status === 'online';
    return [
      {
        id: `status:${event.at}`,
        at: event.at / 1000,
        kind: 'agent',
        tone: isHere ? 'ok' : 'bad',
        title: isHere ? 'Agent connected' : 'Agent disconnected',
      },
    ];
  }
  if (event.kind !== 'container' || typeof event.action !== 'string') return [];
  const told = CONTAINER[event.action];
  if (!told) return [];
  const at = typeof event.timestamp === 'string' ? Date.parse(event.timestamp) / 1000 : NaN;
  const name = typeof event.name === 'string' ? event.name : 'A container';
  const code = typeof event.exit_code === 'number' ? ` with ${event.exit_code}` : '';
  const isBad = event.action === 'die' && typeof event.exit_code === 'number' && event.exit_code !== 0;
  const time = Number.isFinite(at) ? at : event.at / 1000;
  return [
    {
      id: `container:${name}:${event.action}:${time}`,
      at: time,
      kind: 'container',
      tone: isBad ? 'bad' : told.tone,
      title: `${name} ${told.word}${code}`,
    },
  ];
}

const text = (value: unknown) => (typeof value === 'string' ? value : '?');

const OTHERS: Record<string, (detail: StoredEvent['detail']) => Pick<Mark, 'kind' | 'tone' | 'title'>> = {
  online: () => ({ kind: 'agent', tone: 'ok', title: 'Agent connected' }),
  offline: ({ reason }) => ({
    kind: 'agent',
    tone: 'bad',
    title: reason === 'missing' ? 'Agent did not reconnect' : 'Agent disconnected',
  }),
  unwatched: () => ({ kind: 'agent', tone: 'idle', title: 'Service was down' }),
  reboot: () => ({ kind: 'restart', tone: 'accent', title: 'Machine restarted' }),
  agent_version: ({ from, to }) => ({
    kind: 'agent',
    tone: 'idle',
    title: `Agent changed from ${text(from)} to ${text(to)}`,
  }),
  kernel: ({ from, to }) => ({
    kind: 'restart',
    tone: 'idle',
    title: `Kernel changed from ${text(from)} to ${text(to)}`,
  }),
  os: ({ from, to }) => ({
    kind: 'restart',
    tone: 'idle',
    title: `System changed from ${text(from)} to ${text(to)}`,
  }),
  clock: ({ is_off }) => ({
    kind: 'agent',
    tone: is_off ? 'warn' : 'ok',
    title: is_off ? 'Clock is wrong' : 'Clock is right again',
  }),
  conflict: () => ({ kind: 'agent', tone: 'bad', title: 'Another machine uses the same key' }),
  dropped: ({ count }) => ({ kind: 'agent', tone: 'idle', title: `${String(count)} events dropped` }),
};

/** What the service kept of what happened. */
export function marksOfStored(event: StoredEvent): Mark[] {
  const at = Date.parse(event.at);
  if (event.kind === 'container') return marksOfEvent({ ...event.detail, kind: 'container', at });
  const told = OTHERS[event.kind];
  return told ? [{ id: `event:${event.id}`, at: at / 1000, ...told(event.detail) }] : [];
}

/** A start that was noted is known without the uptime: so long after it its agent may have come. */
const NOTED_WITHIN = 600;

/** Whether one of these marks is the start of the machine that its uptime tells. */
export function isNoted(boot: Mark, marks: readonly Mark[]): boolean {
  return marks.some((mark) => mark.kind === 'restart' && mark.at >= boot.at - 10 && mark.at - boot.at <= NOTED_WITHIN);
}

/** When the machine started, told by how long it runs. */
export function markOfBoot(measuredAt: number, uptime: number): Mark {
  // The uptime has whole seconds: rounded, so that it is the same with each sample.
  const at = Math.round((measuredAt - uptime) / 10) * 10;
  return { id: `boot:${at}`, at, kind: 'restart', tone: 'accent', title: 'The machine started' };
}

/** Marks of a span, the newest first, each once. */
export function marksWithin(marks: Mark[], from: number, to: number): Mark[] {
  const seen = new Set<string>();
  return marks
    .filter((mark) => mark.at >= from && mark.at <= to && !seen.has(mark.id) && seen.add(mark.id))
    .sort((one, other) => other.at - one.at);
}
