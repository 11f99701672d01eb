import type { Quota, QuotaName } from '../api/types';
import { bytes } from '../lib/format';

/** From this share of a limit on, the interface shows how much is left. */
const NEAR = 0.8;

/** What each limit counts. */
export const QUOTAS: Record<QuotaName, string> = {
  servers: 'servers',
  api_keys: 'API keys',
  thresholds: 'thresholds',
  evaluations: 'evaluations (thresholds × their servers)',
  silences: 'silences',
  channels: 'notification channels',
  batches: 'running batches',
  command_bytes: 'stored command output',
};

export interface NearLimit {
  name: QuotaName;
  isFull: boolean;
  text: string;
}

export function amount(name: QuotaName, value: number): string {
  return name === 'command_bytes' ? bytes(value) : value.toLocaleString('en');
}

/** The limits among these that are reached or near, in words. */
export function nearLimits(quotas: Quota[], names: QuotaName[]): NearLimit[] {
  return quotas
    .filter(({ name, used, limit }) => names.includes(name) && used >= limit * NEAR)
    .map(({ name, used, limit }) => {
      const isFull = used >= limit;
      const uses = `This account uses ${amount(name, used)} of ${amount(name, limit)} ${QUOTAS[name]}`;
      const text = isFull ? `${uses}: there is no room for another.` : `${uses}.`;
      return { name, isFull, text };
    });
}
