// Tokens for programs: what one is for, and what is entered to make one. Pure.
import * as m from '#messages/tokens';
import type { ProgramToken, ProgramTokenIn } from '../../../api/types';
import { fromLocal, toLocal } from '../../../lib/localtime';
import { list } from '../../../lib/format';
import template from './prometheus.yaml?raw';

/** Names of servers that are written out of a scope. */
const FEW = 3;

/** Which servers a token is for, in words. `nameOf` knows those that the reader sees. */
export function scopeWords(scope: ProgramToken['scope'], nameOf: (id: string) => string | undefined): string {
  if (scope.tag) return m.onTag({ tag: scope.tag });
  const ids = scope.server_ids;
  if (!ids) return m.onAll();
  const names = ids.map((id) => nameOf(id) ?? m.unknownServer());
  if (names.length <= FEW) return list(names);
  return m.onServers({ names: names.slice(0, FEW - 1).join(', '), count: names.length - (FEW - 1) });
}

/** Networks as somebody types them: with commas, blanks or in lines. */
export function networksOf(text: string): string[] {
  return [...new Set(text.split(/[\s,;]+/).filter(Boolean))];
}

const DAY_MS = 86_400_000;

/** The day so many days from a time, by the reader's clock. */
export function dayAfter(now: number, days: number): string {
  return toLocal(now + days * DAY_MS).slice(0, 10);
}

/** The end of a day by the reader's clock, and not after `latest`, the last time that the service takes; null of no day. */
export function endOfDay(day: string, latest: number): string | null {
  const end = fromLocal(`${day}T23:59:59`);
  return end && new Date(Math.min(Date.parse(end), latest)).toISOString();
}

/** What Prometheus is configured with: its file, with the token in it. */
export function prometheusConfig(service: string, token: string, scope: ProgramTokenIn['scope']): string {
  const { protocol, host } = new URL(service);
  const only = scope.server_ids?.length === 1 ? scope.server_ids[0] : undefined;
  const values = {
    SCHEME: protocol.replace(':', ''),
    PATH: only === undefined ? '/api/v1/metrics/prometheus' : `/api/v1/metrics/${only}/prometheus`,
    TOKEN: token,
    HOST: host,
  };
  return template.trim().replace(/[A-Z]{4,}/g, (name) => (values as Record<string, string>)[name] ?? name);
}
