import { expect, it } from 'vitest';
import type { Reading } from '../../live/fleet.svelte';
import { printOf, signersOf } from './print';

const reading = (uptime: number) =>
  ({ network_in: 2048, network_out: 0, load_1: 1.234, uptime_seconds: uptime, containers: 3 }) as Reading;

it('small print is written whole, and an uptime by its largest part', () => {
  expect(printOf(reading(3_605))).toEqual({
    in: '2.00 KiB/s',
    out: '0 B/s',
    load: '1.23',
    uptime: '1 h',
    containers: 3,
  });
  expect([59, 60, 119, 90_061].map((seconds) => printOf(reading(seconds)).uptime)).toEqual([
    '59 s',
    '1 min',
    '1 min',
    '1 d',
  ]);
});

it('what was never measured is a dash', () => {
  expect(printOf(null)).toEqual({ in: '–', out: '–', load: '–', uptime: '–', containers: null });
});

it('a load has three digits, whatever it is', () => {
  const loads = [0, 9.994, 14.4, 99.94, 128.6].map((load_1) => printOf({ ...reading(60), load_1 }).load);
  expect(loads).toEqual(['0.00', '9.99', '14.4', '99.9', '129']);
});

it('a person with two keys signs once, and who is not named is counted', () => {
  const signer = (name: string) => ({ name, kind: 'ssh-ed25519', fingerprint: `SHA256:${name}` });
  const signing = (names: string[], more_signers = 0) => ({
    signing: { name: 'web-1', approvals: 1, signers: names.map(signer), more_signers },
  });
  const words = (agent: Parameters<typeof signersOf>[0]) => signersOf(agent, () => 'somebody');

  expect(words(signing(['ada', 'ben', 'ada']))).toBe('ada, ben');
  expect(words(signing(['ada'], 8))).toBe('ada +8');
  expect(words(signing([]))).toBe('somebody');
  expect([words(null), words({ signing: null })]).toEqual(['–', '–']);
});
