import { expect, it } from 'vitest';
import type { CommandSummary } from '../../../api/types';
import { joined } from './joined';

const item = (command_id: string, status: CommandSummary['status'] = 'succeeded') =>
  ({ command_id, status }) as CommandSummary;

it('keeps each command once, as it was read last, the newest first', () => {
  const known = [item('3', 'running'), item('2'), item('1')];

  const list = joined(known, [item('4'), item('3', 'failed')]);

  expect(list.map((one) => [one.command_id, one.status])).toEqual([
    ['4', 'succeeded'],
    ['3', 'failed'],
    ['2', 'succeeded'],
    ['1', 'succeeded'],
  ]);
});

it('takes an older page that overlaps because something new was run in between', () => {
  expect(joined([item('5'), item('4')], [item('4'), item('3')]).map((one) => one.command_id)).toEqual(['5', '4', '3']);
});

it('keeps what has ended when an older answer comes late', () => {
  const list = joined([item('2', 'failed'), item('1', 'queued')], [item('2', 'running'), item('1', 'running')]);

  expect(list.map((one) => one.status)).toEqual(['failed', 'running']);
});
