import { expect, it } from 'vitest';
import type { Threshold } from '../../api/types';
import { bodyOf, clearFault, fresh, inputOf } from './input';

const stored: Threshold = {
  id: 't',
  server_id: 's',
  tag: null,
  all: false,
  metric_type: 'disk',
  series: null,
  comparison: 'gte',
  threshold_value: 92,
  clear_value: 88,
  duration_seconds: 90,
  target: '/var',
  states: null,
  severity: 'critical',
  enabled: false,
  created_at: '',
  updated_at: '',
};

it('a threshold that is not changed is sent as it was, without its switch', () => {
  expect(bodyOf(inputOf(stored))).toEqual({
    server_id: 's',
    tag: null,
    metric_type: 'disk',
    series: null,
    comparison: 'gte',
    threshold_value: 92,
    clear_value: 88,
    duration_seconds: 90,
    target: '/var',
    states: null,
    severity: 'critical',
  });
});

it('what the metric does not know is left out', () => {
  const input = { ...inputOf(stored), metric: 'container_state', states: ['stopped'] } as const;

  const body = bodyOf({ ...input, states: [...input.states] });

  expect(body).toMatchObject({ comparison: 'gte', clear_value: null, states: ['stopped'], target: '/var' });
  expect(bodyOf({ ...inputOf(stored), metric: 'cpu' })).toMatchObject({ target: null, states: null });
});

it('says for which servers it is', () => {
  expect(bodyOf(fresh({ kind: 'all', of: '' }))).toMatchObject({ server_id: null, tag: null, all: true });
  expect(bodyOf(fresh({ kind: 'tag', of: ' eu ' }))).toMatchObject({ server_id: null, tag: 'eu' });
  expect(bodyOf(fresh({ kind: 'tag', of: 'eu' }))).not.toHaveProperty('all');
});

it('what recovers on the bad side is a fault', () => {
  const at = (comparison: Threshold['comparison'], clear: number | null) =>
    clearFault({ ...fresh({ kind: 'all', of: '' }), comparison, value: 90, clear });

  expect(at('gt', 95)).toBe('It fires over 90 %: this must not be above that.');
  expect(at('lt', 85)).toBe('It fires under 90 %: this must not be below that.');
  expect([at('gt', 90), at('gte', 80), at('lte', 95), at('gt', null)]).toEqual([null, null, null, null]);
});
