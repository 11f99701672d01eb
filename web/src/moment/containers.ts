// Which containers a server had at a time, from the history. Pure.
import type { Alert, SeriesTable, StoredEvent } from '../api/types';
import type { Span } from '../charts/ranges';

export interface ContainerThen {
  name: string;
  cpu: number | null;
  memory: number | null;
}

const CPU = 'container_cpu:';
const MEMORY = 'container_memory:';

/** Names of series to read: of so many containers at most. */
export function namesOf(names: readonly string[], most: number): string[] {
  const containers = [...new Set(names.filter((name) => name.startsWith(CPU)).map((name) => name.slice(CPU.length)))];
  return containers.slice(0, most).flatMap((name) => [CPU + name, MEMORY + name]);
}

/** The containers with a value at a time, those that used the most first. */
export function containersAt(table: SeriesTable, at: number): ContainerThen[] {
  let place = -1;
  for (const [index, time] of table.timestamps.entries()) if (time <= at) place = index;
  if (place < 0) place = table.timestamps.length > 0 ? 0 : -1;
  const found = new Map<string, ContainerThen>();
  for (const [series, { avg }] of Object.entries(table.series)) {
    const value = avg[place] ?? null;
    const isCpu = series.startsWith(CPU);
    if (value === null || (!isCpu && !series.startsWith(MEMORY))) continue;
    const name = series.slice(isCpu ? CPU.length : MEMORY.length);
    const one = found.get(name) ?? { name, cpu: null, memory: null };
    found.set(name, isCpu ? { ...one, cpu: value } : { ...one, memory: value });
  }
  return [...found.values()].sort(
    (one, other) => (other.cpu ?? 0) - (one.cpu ?? 0) || (other.memory ?? 0) - (one.memory ?? 0),
  );
}

/** In which state a container was, and since when in seconds. */
export interface StateThen {
  state: 'running' | 'paused' | 'ended';
  since: number;
  code: number | null;
}

const STATES: Record<string, StateThen['state'] | null> = {
  start: 'running',
  restart: 'running',
  unpause: 'running',
  pause: 'paused',
  die: 'ended',
  destroy: null,
};

/** What the engine last said of each container up to a time, of those that it spoke of. Removed ones are not there. */
export function statesAt(events: readonly StoredEvent[], at: number): Map<string, StateThen> {
  const found = new Map<string, StateThen>();
  const sorted = events
    .filter(({ kind }) => kind === 'container')
    .map(({ at: told, detail }) => ({ detail, time: Date.parse(text(detail.timestamp) ?? told) / 1000 }))
    .filter(({ time }) => time <= at)
    .sort((one, other) => one.time - other.time);
  for (const { detail, time } of sorted) {
    const [name, state] = [text(detail.name), STATES[text(detail.action) ?? '']];
    if (name === null || state === undefined) continue;
    const code = typeof detail.exit_code === 'number' ? detail.exit_code : null;
    if (state === null) found.delete(name);
    else found.set(name, { state, since: time, code: state === 'ended' ? code : null });
  }
  return found;
}

const text = (value: unknown) => (typeof value === 'string' ? value : null);

/** Containers with what they used and the state they were in: those that had ended come last. */
export function withStates(
  used: readonly ContainerThen[],
  states: ReadonlyMap<string, StateThen>,
): (ContainerThen & { told: StateThen | null })[] {
  const known = new Set(used.map(({ name }) => name));
  const ended = [...states]
    .filter(([name, { state }]) => !known.has(name) && state !== 'running')
    .map(([name, told]) => ({ name, cpu: null, memory: null, told }));
  const all = [...used.map((one) => ({ ...one, told: states.get(one.name) ?? null })), ...ended];
  const rank = (one: { told: StateThen | null }) => (one.told?.state === 'ended' ? 1 : 0);
  return all.sort((one, other) => rank(one) - rank(other));
}

type AboutContainer = Pick<Alert, 'metric_type' | 'target'>;
type OfTime = AboutContainer & Pick<Alert, 'server_id' | 'triggered_at' | 'resolved_at'>;

/** The container that an alert is about; null where it is about none. An alert names one, also where its rule has a pattern. */
export function containerOf({ metric_type, target }: AboutContainer): string | null {
  return metric_type === 'container_state' ? (target ?? null) : null;
}

/** The containers whose logs belong to a time of a server: the one that the metric is of, then those with an alert. */
export function loggedThen(alerts: readonly OfTime[], serverId: string, metric: string, span: Span): string[] {
  const of = /^container_[^:]*:(.+)$/.exec(metric)?.[1];
  const fired = alerts.filter(({ server_id, triggered_at, resolved_at }) => {
    const end = resolved_at ? Date.parse(resolved_at) / 1000 : Infinity;
    return server_id === serverId && Date.parse(triggered_at) / 1000 <= span.to && end >= span.from;
  });
  return [...new Set([of, ...fired.map(containerOf)].filter((name): name is string => typeof name === 'string'))];
}
