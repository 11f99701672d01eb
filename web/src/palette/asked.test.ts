import { expect, test } from 'vitest';
import { askedFor, type Verbs } from './asked';

const verbs: Verbs = { silence: ['silence', 'mute'], run: ['run'], fillers: ['for', 'on'], tag: ['tag'] };

test('a silence has what it is for, and how long it lasts', () => {
  expect(askedFor('silence db-1 for 2 h', verbs)).toEqual({
    kind: 'silence',
    rest: 'db-1',
    isTag: false,
    minutes: 120,
  });
  expect(askedFor('sil db 1 30m', verbs)).toEqual({ kind: 'silence', rest: 'db 1', isTag: false, minutes: 30 });
  expect(askedFor('Mute tag web 1d', verbs)).toEqual({ kind: 'silence', rest: 'web', isTag: true, minutes: 1440 });
});

test('a silence without a length leaves it open, and without a server too', () => {
  expect(askedFor('silence', verbs)).toEqual({ kind: 'silence', rest: '', isTag: false, minutes: null });
  expect(askedFor('silence web', verbs)?.minutes).toBeNull();
});

test('no silence is longer than the service takes, or is none', () => {
  expect(askedFor('silence db 9999w', verbs)?.minutes).toBe(525_600);
  expect(askedFor('silence db 0h', verbs)?.minutes).toBe(1);
});

test('a run has what it is on', () => {
  expect(askedFor('run on tag web', verbs)).toEqual({ kind: 'run', rest: 'web', isTag: true, minutes: null });
  expect(askedFor('run db 2h', verbs)?.rest).toBe('db 2h');
});

test('what begins with none of the verbs, or hardly with one, is no sentence', () => {
  for (const typed of ['', 's', 'db-1', 'server silence', 'silences']) expect(askedFor(typed, verbs), typed).toBeNull();
});
