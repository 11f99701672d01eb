// What a list of containers shows and allows. Pure.
import * as m from '#messages/containers';
import type { Container, Port } from '../../../api/types';
import { shortId } from '../../../lib/format';
import type { Tone } from '../../../ui/Badge.svelte';

export type Verb = 'start' | 'stop' | 'restart' | 'pause' | 'unpause';
export const SORTS = ['name', 'state', 'image', 'cpu', 'memory'] as const;
export type SortKey = (typeof SORTS)[number];

/** The state in words, with its health where there is a check, and how it looks. */
export function stateOf(container: Pick<Container, 'state' | 'status'>): { word: string; tone: Tone } {
  const health = /\((?:health: )?(healthy|unhealthy|starting)\)/.exec(container.status)?.[1];
  switch (container.state) {
    case 'running':
      if (health === 'unhealthy') return { word: m.unhealthy(), tone: 'bad' };
      if (health === 'starting') return { word: m.starting(), tone: 'warn' };
      return { word: health ? m.healthy() : m.running(), tone: 'ok' };
    case 'paused':
      return { word: m.paused(), tone: 'warn' };
    case 'restarting':
      return { word: m.restarting(), tone: 'warn' };
    case 'dead':
      return { word: m.dead(), tone: 'bad' };
    case 'exited':
      return { word: m.exited(), tone: isFailure(container.status) ? 'bad' : 'idle' };
    case 'created':
      return { word: m.createdState(), tone: 'idle' };
    default:
      return { word: container.state, tone: 'idle' };
  }
}

/** Ended on its own with a fault: 0 is none, and 137 and 143 are how a stop ends it. */
function isFailure(status: string): boolean {
  const code = /^Exited \((\d+)\)/.exec(status)?.[1];
  return code !== undefined && !['0', '137', '143'].includes(code);
}

/** Whether it takes part in what the server does: what is not is hidden when only those are shown. */
export function isUp(container: Pick<Container, 'state'>): boolean {
  return ['running', 'paused', 'restarting'].includes(container.state);
}

/** What can be done to a container as it is. */
export function verbsOf(state: string): Verb[] {
  if (state === 'running') return ['restart', 'pause', 'stop'];
  if (state === 'paused') return ['unpause', 'restart', 'stop'];
  if (state === 'restarting') return ['stop'];
  return ['start'];
}

/** Ports as one says them: `8080 → 80`, `127.0.0.1:5432 → 5432`, `53/udp`. Those of IPv4 and IPv6 are one. */
export function portsOf(ports: readonly Port[]): string[] {
  const found = new Set<string>();
  for (const port of ports) {
    const inside = `${port.private_port}${port.protocol === 'tcp' ? '' : `/${port.protocol}`}`;
    const isAnywhere = !port.host_ip || ['0.0.0.0', '::'].includes(port.host_ip);
    found.add(port.public_port ? `${isAnywhere ? '' : `${port.host_ip}:`}${port.public_port} → ${inside}` : inside);
  }
  return [...found];
}

/** What a container uses, by its newest sample. */
export interface Usage {
  cpu_percent: number;
  memory_bytes: number;
}

/** Its name, its image or the beginning of its id has every word. */
export function fits(container: Container, search: string): boolean {
  const text = `${container.name} ${container.image} ${shortId(container.id)} ${container.status}`.toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

const STATES = ['dead', 'restarting', 'running', 'paused', 'created', 'exited'];

/** Sorted; those that are the same are by name. What uses nothing comes last. */
export function sorted(
  containers: readonly Container[],
  by: SortKey,
  isDescending: boolean,
  usage: ReadonlyMap<string, Usage>,
): Container[] {
  const value = (container: Container): string | number => {
    if (by === 'cpu') return usage.get(container.id)?.cpu_percent ?? -1;
    if (by === 'memory') return usage.get(container.id)?.memory_bytes ?? -1;
    if (by === 'state') return STATES.indexOf(container.state);
    return by === 'image' ? container.image : container.name;
  };
  const compare = (a: Container, b: Container) => {
    const [x, y] = [value(a), value(b)];
    const order = typeof x === 'string' ? x.localeCompare(String(y), undefined, { numeric: true }) : x - Number(y);
    return isDescending ? -order : order;
  };
  return [...containers].sort((a, b) => compare(a, b) || a.name.localeCompare(b.name));
}

export interface Row {
  /** As it was last listed. */
  container: Container;
  /** It is not listed any more. */
  isGone: boolean;
  /** It came while the list was held. */
  isNew: boolean;
}

export function rowsOf(containers: readonly Container[]): Row[] {
  return containers.map((container) => ({ container, isGone: false, isNew: false }));
}

/**
 * The rows of a list that is held: those of before keep their order, and what is new follows them. What is gone, or fits no longer, keeps
 * its place. A row that came while the list was held leaves with its container: otherwise a list that is held for long would only grow.
 */
export function held(shown: readonly Container[], all: readonly Container[], before: readonly Row[]): Row[] {
  const listed = new Map(all.map((one) => [one.id, one]));
  const fitting = new Set(shown.map(({ id }) => id));
  const kept = before
    .filter(({ container, isNew }) => !isNew || fitting.has(container.id))
    .map((row) => {
      const container = listed.get(row.container.id);
      return { ...row, container: container ?? row.container, isGone: !container };
    });
  const known = new Set(kept.map(({ container }) => container.id));
  const others = shown.filter(({ id }) => !known.has(id));
  return [...kept, ...rowsOf(others).map((row) => ({ ...row, isNew: true }))];
}

export const VERBS: Record<Verb, { label: () => string; doing: () => string; done: () => string }> = {
  start: { label: m.start, doing: m.startDoing, done: m.startDone },
  stop: { label: m.stop, doing: m.stopDoing, done: m.stopDone },
  restart: { label: m.restart, doing: m.restartDoing, done: m.restartDone },
  pause: { label: m.pause, doing: m.pauseDoing, done: m.pauseDone },
  unpause: { label: m.resume, doing: m.resumeDoing, done: m.resumeDone },
};
