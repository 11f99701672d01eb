// @vitest-environment jsdom
import { afterEach, expect, it, vi } from 'vitest';
import { api } from '../../../api/client';
import type { CommandSummary } from '../../../api/types';
import { History } from './history.svelte';

afterEach(() => void vi.restoreAllMocks());

const item = (command_id: string, status: CommandSummary['status'] = 'succeeded') =>
  ({ command_id, status }) as CommandSummary;

/** A history whose questions wait until they are answered. */
function asked() {
  const answers: ((items: CommandSummary[], total?: number) => void)[] = [];
  const get = vi.spyOn(api, 'GET').mockImplementation(
    (() =>
      new Promise((resolve) => {
        answers.push((items, total = items.length) => {
          const response = new Response(null, { headers: { 'X-Total-Count': String(total) } });
          resolve({ data: items, response });
        });
      })) as never,
  );
  const offsets = () =>
    get.mock.calls.map((call) => (call[1] as { params: { query: { offset: number } } }).params.query.offset);
  const settled = () => new Promise((resolve) => setTimeout(resolve));
  return { history: new History('one'), answers, offsets, settled };
}

it('asks one question a time, and once more for what was asked for during it', async () => {
  const { history, answers, offsets, settled } = asked();

  const loaded = history.load();
  void history.load();
  void history.load();
  expect([offsets(), history.isLoading]).toEqual([[0], true]);
  answers[0]?.([item('1', 'running')]);
  await settled();
  expect([offsets(), history.isLoading]).toEqual([[0, 0], true]);
  answers[1]?.([item('1')]);
  await loaded;

  expect([offsets(), history.isLoading]).toEqual([[0, 0], false]);
  expect(history.items.map(({ status }) => status)).toEqual(['succeeded']);
});

it('asks once more after a command was started during a question, and not otherwise', async () => {
  const { history, answers, offsets, settled } = asked();

  void history.load();
  history.add(item('2', 'queued'));
  answers[0]?.([item('1')]);
  await settled();
  answers[1]?.([item('2', 'running'), item('1')]);
  await settled();
  history.add(item('3', 'queued'));
  await settled();

  expect(offsets()).toEqual([0, 0]);
  expect(history.items.map(({ command_id }) => command_id)).toEqual(['3', '2', '1']);
});

it('shows more while the newest are read again', async () => {
  const { history, answers, offsets, settled } = asked();
  void history.load();
  answers[0]?.([item('2')], 2);
  await settled();

  void history.load();
  expect(history.busy).toBe(false);
  void history.more();
  void history.more();
  expect([offsets(), history.busy]).toEqual([[0, 0, 1], true]);
  answers[2]?.([item('1')], 2);
  await settled();

  expect([history.items.length, history.busy, history.isLoading]).toEqual([2, false, true]);
});
