import { describe, expect, it } from 'vitest';
import type { Schedule } from '../../../api/types';
import { toLocal } from '../../../lib/localtime';
import { bodyOf, dueTimes, endOf, faultsOf, inputOf, needsSigning, type Input } from './input';

const NOW = Date.parse('2026-11-26T10:00:00Z');
const DAY = 86_400_000;

const whole: Input = {
  ...inputOf(null, 'UTC'),
  name: ' Backup ',
  serverIds: ['s1'],
  command: 'backup',
};
const faults = (change: Partial<Input>, isSigned = false) => {
  const input = { ...whole, ...change };
  return Object.keys(faultsOf(input, isSigned, NOW, dueTimes(input, NOW, 1)));
};
const after = (days: number) => new Date(NOW + days * DAY).toISOString();

describe('the form of a schedule', () => {
  it('finds what is wrong at its field', () => {
    expect(faults({})).toEqual([]);
    expect(faults(inputOf(null, 'Nowhere/At all'))).toEqual(['name', 'command', 'servers', 'timeZone']);
    expect(faults({ serverIds: [], tag: 'db' })).toEqual([]);
    expect(faults({ cron: '0 3 * *' })).toEqual(['cron']);
  });

  it('takes an end that lets it run, and for what is signed within a year', () => {
    expect(faults({ until: after(-1) })).toEqual(['until']);
    expect(faults({ until: new Date(NOW + 60_000).toISOString() })).toEqual(['until']);
    expect(faults({ until: after(500) })).toEqual([]);
    expect(faults({ until: after(366) }, true)).toEqual(['until']);
    expect(faults({ until: after(365) }, true)).toEqual([]);
  });

  it('shows when it is due until it ends', () => {
    const times = dueTimes({ ...whole, until: after(3) }, NOW, 5);

    expect(times.map((at) => new Date(at).toISOString().slice(0, 13))).toEqual([
      '2026-11-27T03',
      '2026-11-28T03',
      '2026-11-29T03',
    ]);
    expect(dueTimes({ ...whole, cron: 'often' }, NOW, 5)).toEqual([]);
  });

  it('keeps the seconds of an end that nobody has changed', () => {
    const before = '2027-03-01T12:00:42Z';
    const shown = toLocal(before);

    expect(endOf(shown, before)).toBe(before);
    expect(endOf(`${shown}:00`, before)).toBe(before);
    expect(endOf(`${shown}:10`, before)).toBe('2027-03-01T12:00:10Z');
    expect(endOf('', before)).toBeNull();
    expect(endOf('', null)).toBeNull();
    expect(endOf(`${shown}:00`, null)).toBe('2027-03-01T12:00:00Z');
  });

  it('sends the same expression that is signed', () => {
    expect(bodyOf({ ...whole, cron: '  0   3 * * * ' })).toMatchObject({
      name: 'Backup',
      cron: '0 3 * * *',
      tag: null,
    });
    expect(bodyOf({ ...whole, serverIds: [], tag: 'db' })).toMatchObject({ server_ids: null, tag: 'db' });
  });
});

it('is signed again where the signature says something else', () => {
  const before = {
    ...bodyOf(whole),
    server_ids: ['s1', 's2'],
    tag: null,
    signed: true,
    until: after(90),
  } as unknown as Schedule;
  const kept = inputOf(before, 'UTC');
  const changed = (change: Partial<Input>) => needsSigning(before, { ...kept, ...change });

  expect(needsSigning(null, kept)).toBe(true);
  expect([{}, { name: 'Other' }, { serverIds: ['s2'] }, { until: after(30) }, { concurrency: 1 }].map(changed)).toEqual(
    Array(5).fill(false),
  );
  const others = [
    { command: 'other' },
    { cron: '0 4 * * *' },
    { timeoutSeconds: 61 },
    { serverIds: ['s1', 's3'] },
    { tag: 'db' },
    { until: after(91) },
    { until: null },
  ];
  expect(others.map(changed)).toEqual(Array(others.length).fill(true));
});
