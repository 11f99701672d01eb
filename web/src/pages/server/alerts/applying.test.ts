import { expect, it } from 'vitest';
import type { Server, Threshold } from '../../../api/types';
import { applying } from './applying';

const threshold = (id: string, reach: Partial<Threshold>): Threshold => ({
  id,
  all: false,
  server_id: null,
  tag: null,
  metric_type: 'cpu',
  comparison: 'gt',
  threshold_value: 90,
  duration_seconds: 0,
  enabled: true,
  severity: 'warning',
  created_at: '2026-11-20T09:30:00Z',
  updated_at: '2026-11-20T09:30:00Z',
  ...reach,
});

it("finds a server's own thresholds, those of its tags, and those for all", () => {
  const server = { id: 's1', tags: ['web'] } as Server;
  const all = [
    threshold('for all', { all: true }),
    threshold('of another tag', { tag: 'db' }),
    threshold('of its tag', { tag: 'web' }),
    threshold("another's", { server_id: 's2' }),
    threshold('its own', { server_id: 's1' }),
  ];

  expect(applying(all, server).map(({ id }) => id)).toEqual(['its own', 'of its tag', 'for all']);
});
