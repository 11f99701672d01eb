import { describe, expect, it } from 'vitest';
import type { Quota, QuotaName } from '../api/types';
import { nearLimits } from './quota';

const quota = (name: QuotaName, used: number, limit: number): Quota => ({ name, used, limit });

describe('limits that are near', () => {
  it('are those of which four fifths are used, and say whether one more fits', () => {
    const quotas = [quota('servers', 7, 10), quota('api_keys', 16_000, 20_000), quota('thresholds', 3, 3)];

    expect(nearLimits(quotas, ['servers', 'api_keys', 'thresholds'])).toEqual([
      { name: 'api_keys', isFull: false, text: 'API keys: this account uses 16,000 of 20,000.' },
      { name: 'thresholds', isFull: true, text: 'Alert rules: this account uses 3 of 3. No more can be added.' },
    ]);
  });

  it('show only what somebody is about to make', () => {
    expect(nearLimits([quota('servers', 10, 10), quota('silences', 1, 1000)], ['silences'])).toEqual([]);
  });

  it('count what was lowered below what there is, and what nobody may have', () => {
    const texts = nearLimits([quota('channels', 50, 2), quota('batches', 0, 0)], ['channels', 'batches']);

    expect(texts.map(({ text }) => text)).toEqual([
      'Notification channels: this account uses 50 of 2. No more can be added.',
      'Unfinished bulk runs: this account uses 0 of 0. No more can be added.',
    ]);
  });
});
