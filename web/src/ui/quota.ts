import * as m from '#messages/ui';
import type { Quota, QuotaName } from '../api/types';
import { bytes, number } from '../lib/format';

/** From this share of a limit on, the interface shows how much is left. */
const NEAR = 0.8;

/** What each limit counts. */
export const QUOTAS: Record<QuotaName, () => string> = {
  servers: m.quotaServers,
  api_keys: m.quotaApiKeys,
  thresholds: m.quotaThresholds,
  evaluations: m.quotaEvaluations,
  silences: m.quotaSilences,
  channels: m.quotaChannels,
  views: m.quotaViews,
  grants: m.quotaGrants,
  tokens: m.quotaTokens,
  enrolments: m.quotaEnrolments,
  teams: m.quotaTeams,
  batches: m.quotaBatches,
  command_bytes: m.quotaCommandBytes,
};

export interface NearLimit {
  name: QuotaName;
  isFull: boolean;
  text: string;
}

export function amount(name: QuotaName, value: number): string {
  return name === 'command_bytes' ? bytes(value) : number(value);
}

/** The limits among these that are reached or near, in words. */
export function nearLimits(quotas: Quota[], names: QuotaName[]): NearLimit[] {
  return quotas
    .filter(({ name, used, limit }) => names.includes(name) && used >= limit * NEAR)
    .map(({ name, used, limit }) => {
      const isFull = used >= limit;
      const uses = { name: QUOTAS[name](), used: amount(name, used), limit: amount(name, limit) };
      const text = isFull ? m.atLimit(uses) : m.nearLimit(uses);
      return { name, isFull, text };
    });
}
