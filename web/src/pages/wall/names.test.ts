import { describe, expect, test } from 'vitest';
import { sharedLength, shownNames } from './names';

const written = (names: string[], room: number) => shownNames(names, room).map(({ head, tail }) => [head, tail]);

describe('what all names share', () => {
  test.each<[string[], number]>([
    [['simulated-001', 'simulated-017'], 10],
    [['web-eu-1', 'web-eu-2'], 7],
    [['web1', 'web2', 'web30'], 3],
    [['database', 'dataset'], 0],
    [['web-101', 'web-102'], 4],
    [['web', 'web-1'], 0],
    [['same', 'same'], 0],
    [['alone'], 0],
    [[], 0],
  ])('of %j ends with a part of the name', (names, length) => {
    expect(sharedLength(names)).toBe(length);
  });
});

describe('names on tiles', () => {
  test('are whole where there is room', () => {
    expect(written(['rack-01', 'rack-02'], 10)).toEqual([
      ['rack-01', ''],
      ['rack-02', ''],
    ]);
  });

  test('lose what all of them share where there is none', () => {
    expect(written(['simulated-001', 'simulated-017'], 10)).toEqual([
      ['001', ''],
      ['017', ''],
    ]);
    expect(written(['a1.prod.example.org', 'b2.prod.example.org'], 10)).toEqual([
      ['a1', ''],
      ['b2', ''],
    ]);
  });

  test('keep their end where they are still too long', () => {
    expect(written(['postgresql-primary-eu-1', 'nas'], 12)).toEqual([
      ['postgresql-primary-eu', '-1'],
      ['nas', ''],
    ]);
    expect(written(['abcdefghijklmnopqrstuvwxyz', 'nas'], 12)).toEqual([
      ['abcdefghijklmnopqrst', 'uvwxyz'],
      ['nas', ''],
    ]);
  });

  test('tell 200 servers apart', () => {
    const names = Array.from({ length: 200 }, (_, index) => `simulated-${String(index).padStart(3, '0')}`);
    const shown = shownNames(names, 10).map(({ head, tail }) => head + tail);

    expect(new Set(shown).size).toBe(200);
    expect(shown.every((name) => name.length <= 10)).toBe(true);
  });
});
