import { describe, expect, it } from 'vitest';
import type { Batch, BatchResult } from '../../api/types';
import { countOf, filtered, grouped, isOfPolicy, kept, lineOf, unfinished } from './results';

function result(command_id: string, fields: Partial<BatchResult> = {}): BatchResult {
  return {
    command_id,
    server_id: command_id,
    server_name: command_id,
    status: 'succeeded',
    exit_code: 0,
    duration_ms: 5,
    truncated: false,
    error: null,
    preview: '',
    started_at: null,
    finished_at: null,
    ...fields,
  };
}

describe('results of a batch', () => {
  it('puts servers together that said the same, the most first', () => {
    const groups = grouped([
      result('a', { preview: 'x\n' }),
      result('b', { preview: 'y\n' }),
      result('c', { preview: 'y\n' }),
      result('d', { preview: 'y\n', status: 'failed', exit_code: 1 }),
    ]);

    expect(groups.map((group) => group.results.map((one) => one.command_id))).toEqual([['b', 'c'], ['a'], ['d']]);
  });

  it('puts refusals together by their reason', () => {
    const error = { code: 'agent_refused', detail: 'this agent runs no commands' };
    const [group] = grouped([result('a', { status: 'failed', error }), result('b', { status: 'failed', error })]);

    expect(group).toMatchObject({ isError: true, text: 'this agent runs no commands', isCut: false });
  });

  it('shows the last line, or the first one of an output that continues', () => {
    expect(lineOf('one\ntwo\n\n')).toEqual({ text: 'two', isFirst: false });
    expect(lineOf(`first\n${'x'.repeat(5000)}`)).toEqual({ text: 'first', isFirst: true });
    expect(lineOf('')).toEqual({ text: '', isFirst: false });
  });

  it('keeps the objects of what did not change', () => {
    const older = [result('a'), result('b', { status: 'running' })];

    const newer = kept(older, [result('a'), result('b', { status: 'failed' })]);

    expect(newer[0]).toBe(older[0]);
    expect(newer[1]?.status).toBe('failed');
  });

  it('filters, and counts what a filter shows', () => {
    const counts: Batch['counts'] = {
      queued: 1,
      running: 2,
      succeeded: 3,
      failed: 4,
      timed_out: 5,
      cancelled: 6,
      lost: 7,
      skipped: 8,
    };

    expect(countOf(counts, 'failed')).toBe(16);
    expect(countOf(counts, 'all')).toBe(36);
    expect(filtered([result('a'), result('b', { status: 'lost' })], 'failed').length).toBe(1);
    expect(unfinished([result('a'), result('b', { status: 'skipped' })]).length).toBe(1);
  });

  it('know what a line of the policy would change', () => {
    const refused = result('a', {
      status: 'failed',
      error: { code: 'agent_refused', detail: 'this agent runs no commands' },
    });

    expect(isOfPolicy(refused, ['metrics'])).toBe(true);
    expect(isOfPolicy(refused, undefined)).toBe(true);
    // It runs those of others.
    expect(isOfPolicy(refused, ['metrics', 'commands'])).toBe(false);
    expect(isOfPolicy(result('b', { error: { code: 'agent_offline', detail: 'away' } }), [])).toBe(false);
  });
});
