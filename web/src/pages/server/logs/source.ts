// Which log is meant, as addresses of the interface and of the service say it. Pure.
import * as m from '#messages/liveLog';

export type Source =
  | { kind: 'system' }
  | { kind: 'container'; containerId: string }
  /** An empty path: none was given yet. */
  | { kind: 'file'; path: string };

export function sourceOf(query: URLSearchParams): Source {
  const containerId = query.get('container_id');
  const path = query.get('path');
  if (query.get('source') === 'container' && containerId) return { kind: 'container', containerId };
  if (query.get('source') === 'file') return { kind: 'file', path: path ?? '' };
  return { kind: 'system' };
}

/** As changes of the page's address. */
export function addressOfSource(source: Source): Record<string, string | null> {
  return { source: null, container_id: null, path: null, ...parameters(source) };
}

/** As parameters of the service; none where it needs none. */
export function parameters(source: Source): Parameters {
  if (source.kind === 'container') return { source: 'container', container_id: source.containerId };
  if (source.kind === 'file') return { source: 'file', path: source.path };
  return {};
}

interface Parameters {
  source?: 'container' | 'file';
  container_id?: string;
  path?: string;
}

export function socketPath(serverId: string, source: Source, tail: number): string {
  const query = new URLSearchParams({ ...parameters(source), tail: String(tail) });
  return `/ws/logs/${encodeURIComponent(serverId)}?${query}`;
}

/** A log of a server as one word of an address: `SERVER:container:NAME`. */
export function keyOf(serverId: string, source: Source): string {
  if (source.kind === 'container') return `${serverId}:container:${source.containerId}`;
  return source.kind === 'file' ? `${serverId}:file:${source.path}` : `${serverId}:system`;
}

/** The log that such a word means; null for none. */
export function ofKey(key: string): { serverId: string; source: Source } | null {
  const [serverId = '', kind = ''] = key.split(':', 2);
  const rest = key.slice(serverId.length + kind.length + 2);
  if (!/^[0-9a-f-]{36}$/i.test(serverId)) return null;
  if (kind === 'system' && key.length === serverId.length + 7) return { serverId, source: { kind: 'system' } };
  if (kind === 'container' && rest) return { serverId, source: { kind: 'container', containerId: rest } };
  if (kind === 'file' && faultOfPath(rest) === null) return { serverId, source: { kind: 'file', path: rest } };
  return null;
}

/** The page on which other logs can be added to this one. */
export function mixAddress(serverId: string, source: Source): string {
  return `/logs?${new URLSearchParams({ log: keyOf(serverId, source) })}`;
}

/** What is wrong with a path before anybody is asked. */
export function faultOfPath(path: string): string | null {
  if (path === '') return m.pathMissing();
  return path.startsWith('/') ? null : m.pathRelative();
}

export interface Problem {
  code: string;
  detail: string;
}

/** What can be done about a log that is not read. */
export function advice(problem: Problem, source: Source): string | null {
  if (problem.code === 'path_not_allowed' || (problem.code === 'agent_refused' && source.kind === 'file'))
    return m.advicePath();
  if (problem.code === 'agent_refused') return m.adviceLogs();
  if (problem.code === 'no_system_log' || problem.code === 'agent_error') return m.adviceOther();
  if (problem.code === 'container_not_found') return m.adviceGone();
  return null;
}
