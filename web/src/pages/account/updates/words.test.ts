import { expect, test } from 'vitest';
import { countWords, countsOf, phaseOf, reasonOf, waveName } from './words';

const BEGUN = '2026-11-27T15:30:00.000Z';
const at = (minutes: number) => Date.parse(BEGUN) + minutes * 60_000;
const phases = (status: Parameters<typeof phaseOf>[0]['status'], now: number) =>
  [0, 1, 2].map((index) => phaseOf({ status, wave: 1, wave_since: BEGUN }, index, now));

test('a wave begins when its time has come', () => {
  expect(phases('running', at(-1))).toEqual(['done', 'next', 'later']);
  expect(phases('running', at(0))).toEqual(['done', 'running', 'later']);
  expect(phases('paused', at(-1))).toEqual(['done', 'paused', 'later']);
  expect(phases('paused', at(1))).toEqual(['done', 'paused', 'later']);
});

test('of a rollout that ended early, later waves never began', () => {
  expect(phases('done', at(1))).toEqual(['done', 'done', 'done']);
  expect(phases('stopped', at(1))).toEqual(['done', 'ended', 'skipped']);
  expect(phases('cancelled', at(-1))).toEqual(['done', 'skipped', 'skipped']);
});

test('a refusal is said in words, and a failure in those of the agent', () => {
  const refused = (reason: string | null) => reasonOf({ state: 'refused', reason });

  expect(refused('not_newer')).toBe('It runs this version or a newer one.');
  expect(refused('other')).toBe('Its agent refused for another reason.');
  expect(refused('constructor')).toBe('Its agent refused for another reason.');
  expect(refused(null)).toBe('Its agent refused for another reason.');
  expect(reasonOf({ state: 'failed', reason: 'it did not connect within 60 s' })).toBe(
    'It did not connect within 60 s.',
  );
  expect(reasonOf({ state: 'updated', reason: null })).toBeNull();
});

test('servers are counted by their states', () => {
  const servers = (['updated', 'updated', 'failed', 'refused', 'waiting'] as const).map((state) => ({ state }));

  expect(countWords(countsOf(servers))).toBe('2 of 5 updated, 1 failed, 1 refused');
  expect(countWords(countsOf([{ state: 'offered' }]))).toBe('0 of 1 updated');
});

test('a wave is called by its tags', () => {
  expect(waveName(['canary'])).toBe('canary');
  expect(waveName(['db', 'web'])).toBe('db or web');
  expect(waveName([])).toBe('all others');
});
