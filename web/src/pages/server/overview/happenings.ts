// What happened to a server, from wherever it is known, as marks on the charts.
import * as m from '#messages/overview';
import type { Alert, AuditEntry, StoredEvent } from '../../../api/types';
import type { Tone } from '../../../charts/colours';
import { marksNear, type Mark } from '../../../charts/marks';
import { shortId } from '../../../lib/format';
import { titleOf } from '../../alerts/sentence';
import { SEVERITIES, severityTone } from '../../alerts/severity';
import type { ServerEvent } from '../view.svelte';

const seconds = (time: string) => Date.parse(time) / 1000;

/** When an alert was raised, and when it ended. */
export function marksOfAlert(alert: Alert, server: string): Mark[] {
  // Whose page it is needs no saying.
  const message = titleOf(alert).replace(' on ' + server, '');
  const href = `/alerts/${alert.id}`;
  const marks: Mark[] = [
    {
      id: `alert:${alert.id}`,
      at: seconds(alert.triggered_at),
      kind: 'alert',
      tone: severityTone(alert.severity),
      title: message,
      detail: SEVERITIES[alert.severity](),
      href,
    },
  ];
  if (alert.resolved_at) {
    marks.push({
      id: `resolved:${alert.id}`,
      at: seconds(alert.resolved_at),
      kind: 'alert',
      tone: 'ok',
      title: m.resolved({ alert: message }),
      href,
    });
  }
  return marks;
}

const ACTIONS: Record<string, (values: { user: string; container: string }) => string> = {
  'command.run': m.ranCommand,
  'terminal.open': m.openedTerminal,
  'container.start': m.startedContainer,
  'container.stop': m.stoppedContainer,
  'container.restart': m.restartedContainer,
  'container.pause': m.pausedContainer,
  'container.unpause': m.resumedContainer,
};

/** Names of containers by their ids: a stopped one has its name only in the entry of how the action ended. */
export function containerNames(entries: readonly AuditEntry[]): ReadonlyMap<string, string> {
  return new Map(
    entries.flatMap(({ target, detail }): [string, string][] =>
      target && typeof detail.name === 'string' && detail.name !== '' ? [[target, detail.name]] : [],
    ),
  );
}

/** What somebody did to the machine. What changes nothing there is none. */
export function marksOfAudit(entries: AuditEntry[], address: string): Mark[] {
  // What takes a while has two entries, which may lie on two pages: the start, when it is there, stands for both.
  const started = new Set(entries.filter((entry) => entry.outcome === 'started').map(keyOf));
  const names = containerNames(entries);
  return entries.flatMap((entry): Mark[] => {
    const what = ACTIONS[entry.action];
    if (!what || (entry.outcome !== 'started' && entry.target && started.has(keyOf(entry)))) return [];
    const isCommand = entry.action === 'command.run';
    const text = isCommand && typeof entry.detail.command === 'string' ? entry.detail.command : undefined;
    const href = isCommand && entry.target ? { href: `${address}/commands?command=${entry.target}` } : {};
    const detail = text ? { detail: text } : {};
    const id = entry.target ?? '';
    const title = what({ user: entry.username, container: names.get(id) ?? shortId(id) });
    const isRefused = entry.outcome !== 'started' && entry.outcome !== 'ok';
    return [
      {
        id: `audit:${entry.seq}`,
        at: seconds(entry.at),
        kind: isCommand || entry.action === 'terminal.open' ? 'command' : 'action',
        tone: isRefused ? 'warn' : 'accent',
        title: isRefused ? m.withOutcome({ what: title, outcome: entry.outcome }) : title,
        ...detail,
        ...href,
      },
    ];
  });
}

const keyOf = (entry: AuditEntry) => `${entry.action} ${entry.target ?? ''}`;

const CONTAINER: Record<string, { title: (values: { name: string }) => string; tone: Tone }> = {
  start: { title: m.containerStarted, tone: 'ok' },
  die: { title: m.containerEnded, tone: 'warn' },
  oom: { title: m.containerOom, tone: 'bad' },
  health_status: { title: m.containerHealth, tone: 'idle' },
  restart: { title: m.containerRestarted, tone: 'accent' },
  pause: { title: m.containerPaused, tone: 'idle' },
  unpause: { title: m.containerResumed, tone: 'ok' },
  destroy: { title: m.containerRemoved, tone: 'idle' },
};

/** What the agent reported. Each stop comes with an end of its own, and a list of states is no news. */
export function marksOfEvent(event: ServerEvent): Mark[] {
  if (event.kind === 'status') {
    const isHere = event.status === 'online';
    return [
      {
        id: `status:${event.at}`,
        at: event.at / 1000,
        kind: 'agent',
        tone: isHere ? 'ok' : 'bad',
        title: isHere ? m.agentConnected() : m.agentDisconnected(),
      },
    ];
  }
  if (event.kind !== 'container' || typeof event.action !== 'string') return [];
  const told = CONTAINER[event.action];
  if (!told) return [];
  const at = typeof event.timestamp === 'string' ? Date.parse(event.timestamp) / 1000 : NaN;
  const name = typeof event.name === 'string' ? event.name : m.aContainer();
  const code = event.action === 'die' && typeof event.exit_code === 'number' ? String(event.exit_code) : null;
  const isBad = event.action === 'die' && typeof event.exit_code === 'number' && event.exit_code !== 0;
  const time = Number.isFinite(at) ? at : event.at / 1000;
  return [
    {
      id: `container:${name}:${event.action}:${time}`,
      at: time,
      kind: 'container',
      tone: isBad ? 'bad' : told.tone,
      title: code === null ? told.title({ name }) : m.containerEndedWith({ name, code }),
    },
  ];
}

const text = (value: unknown) => (typeof value === 'string' ? value : '?');

const each = (sign: string, names: unknown) =>
  Array.isArray(names) ? names.map((name: unknown) => `${sign}${text(name)}`) : [];

const optional = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined);

/** What people and programs wrote. */
function written(event: StoredEvent): Mark[] {
  const { detail } = event;
  const [what, version] = [text(detail.text), optional(detail.version)];
  const isDeploy = event.kind === 'deploy';
  const [by, url] = [optional(detail.username), optional(detail.url)];
  const deployed = version ? m.deployedVersion({ what, version }) : m.deployed({ what });
  return [
    {
      id: `event:${event.id}`,
      at: seconds(event.at),
      kind: isDeploy ? 'deploy' : 'note',
      tone: isDeploy ? 'accent' : 'idle',
      title: isDeploy ? deployed : what,
      eventId: event.id,
      ...(by ? { by } : {}),
      // The service checks it, too. A link of another kind would run as a script.
      ...(url && /^https?:\/\//i.test(url) ? { href: url } : {}),
    },
  ];
}

const OTHERS: Record<
  string,
  (detail: StoredEvent['detail'], me?: string) => Pick<Mark, 'kind' | 'tone' | 'title' | 'href'>
> = {
  online: () => ({ kind: 'agent', tone: 'ok', title: m.agentConnected() }),
  offline: ({ reason }) => ({
    kind: 'agent',
    tone: 'bad',
    title: reason === 'missing' ? m.agentMissing() : m.agentDisconnected(),
  }),
  unwatched: () => ({ kind: 'agent', tone: 'idle', title: m.serviceDown() }),
  reboot: () => ({ kind: 'restart', tone: 'accent', title: m.machineRestarted() }),
  agent_version: ({ from, to }) => ({
    kind: 'agent',
    tone: 'idle',
    title: m.agentChanged({ from: text(from), to: text(to) }),
  }),
  policy: ({ gained, lost }) => ({
    kind: 'agent',
    tone: 'idle',
    title: m.policyChanged({ changes: [...each('+', gained), ...each('−', lost)].join(', ') }),
  }),
  kernel: ({ from, to }) => ({
    kind: 'restart',
    tone: 'idle',
    title: m.kernelChanged({ from: text(from), to: text(to) }),
  }),
  os: ({ from, to }) => ({
    kind: 'restart',
    tone: 'idle',
    title: m.systemChanged({ from: text(from), to: text(to) }),
  }),
  clock: ({ is_off }) => ({
    kind: 'agent',
    tone: is_off ? 'warn' : 'ok',
    title: is_off ? m.clockWrong() : m.clockRight(),
  }),
  conflict: () => ({ kind: 'agent', tone: 'bad', title: m.keyConflict() }),
  schedule_failed: ({ name, batch_id, schedule_owner_id }, me) => ({
    kind: 'command',
    tone: 'bad',
    title: m.scheduleFailed({ name: text(name) }),
    // Nobody else can read the run.
    ...(typeof batch_id === 'string' && me !== undefined && schedule_owner_id === me
      ? { href: `/run/${encodeURIComponent(batch_id)}` }
      : {}),
  }),
  dropped: ({ count }) => ({ kind: 'agent', tone: 'idle', title: m.eventsDropped({ count: String(count) }) }),
};

/** What the service kept of what happened, for the account with the id `me`. */
export function marksOfStored(event: StoredEvent, me?: string): Mark[] {
  const at = Date.parse(event.at);
  if (event.kind === 'deploy' || event.kind === 'note') return written(event);
  if (event.kind === 'container') return marksOfEvent({ ...event.detail, kind: 'container', at });
  const told = OTHERS[event.kind];
  return told ? [{ id: `event:${event.id}`, at: at / 1000, ...told(event.detail, me) }] : [];
}

/** The page hears within so many seconds what the service notes of an agent, as far as their clocks agree. */
const HEARD_WITHIN = 10;

/** What the service kept. A mark that was shown before that was read keeps its id, and with it its row and its sign. */
export function withIdsOf(shown: readonly Mark[], stored: readonly Mark[]): Mark[] {
  const ids = new Map<string, string>();
  for (const { id, at, kind, title } of shown) {
    const same = stored.filter((mark) => mark.kind === kind && mark.title === title && !ids.has(mark.id));
    const [nearest] = marksNear(same, at, HEARD_WITHIN, 1);
    if (nearest) ids.set(nearest.id, id);
  }
  return stored.map((mark) => ({ ...mark, id: ids.get(mark.id) ?? mark.id }));
}

/** A start that was noted is known without the uptime: so long after it its agent may have come. */
const NOTED_WITHIN = 600;

/** Whether one of these marks is the start of the machine that its uptime tells. */
export function isNoted(boot: Mark, marks: readonly Mark[]): boolean {
  return marks.some((mark) => mark.kind === 'restart' && mark.at >= boot.at - 10 && mark.at - boot.at <= NOTED_WITHIN);
}

/** When the machine started, told by how long it runs. */
export function markOfBoot(measuredAt: number, uptime: number): Mark {
  // The uptime has whole seconds: rounded, so that it is the same with almost each sample. There is one, wherever it stands.
  const at = Math.round((measuredAt - uptime) / 10) * 10;
  return { id: 'boot', at, kind: 'restart', tone: 'accent', title: m.machineStarted() };
}

/** Marks of a span, the newest first, each once. */
export function marksWithin(marks: Mark[], from: number, to: number): Mark[] {
  const seen = new Set<string>();
  return marks
    .filter((mark) => mark.at >= from && mark.at <= to && !seen.has(mark.id) && seen.add(mark.id))
    .sort((one, other) => other.at - one.at);
}
