// @vitest-environment jsdom
import { afterEach, expect, it, vi } from 'vitest';
import { api } from '../../api/client';
import type { Threshold } from '../../api/types';
import { confirm } from '../../ui/confirm.svelte';
import { toasts } from '../../ui/toasts.svelte';
import { answered } from '../testing';
import { ThresholdList } from './thresholds.svelte';

afterEach(() => void vi.restoreAllMocks());

it('a rule that is gone already is deleted, and one that may not be is not', async () => {
  const rule = {
    id: 'one',
    metric_type: 'cpu',
    comparison: 'gt',
    threshold_value: 90,
    duration_seconds: 0,
  } as Threshold;
  vi.spyOn(api, 'GET').mockImplementation((async () => answered([])) as never);
  vi.spyOn(confirm, 'ask').mockResolvedValue(true);
  const failed = vi.spyOn(toasts, 'failed');
  const list = new ThresholdList();
  const answer = (status: number) =>
    vi.spyOn(api, 'DELETE').mockResolvedValue({ error: {}, response: new Response(null, { status }) } as never);

  answer(404);
  await list.remove(rule);
  expect(failed).not.toHaveBeenCalled();
  answer(403);
  await list.remove(rule);
  expect(failed).toHaveBeenCalledTimes(1);
});
