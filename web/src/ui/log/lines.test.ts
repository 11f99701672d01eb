import { describe, expect, it } from 'vitest';
import { lineOf, Lines, note, overlap, written } from './lines';

const line = (message: string, timestamp: string | null = null) => lineOf({ message, timestamp, stream: 'stdout' });

describe('Lines', () => {
  it('lets the oldest go, and numbers stay', () => {
    const lines = new Lines(3);
    for (const text of ['a', 'b', 'c', 'd']) lines.push(line(text));
    expect([lines.first, lines.end, lines.count]).toEqual([1, 4, 3]);
    expect([lines.get(0)?.plain, lines.get(1)?.plain, lines.get(3)?.plain]).toEqual([undefined, 'b', 'd']);
  });

  it('holds at most so many characters', () => {
    const lines = new Lines(100, 10);
    for (let count = 0; count < 5; count += 1) lines.push(line('1234'));
    expect([lines.count, lines.characters]).toEqual([2, 8]);
    lines.push(line('longer than everything'));
    expect(lines.count).toBe(1);
  });

  it('continues counting when it is cleared', () => {
    const lines = new Lines(3);
    lines.push(line('a'));
    lines.clear();
    lines.push(line('b'));
    expect([lines.get(0), lines.get(1)?.plain]).toEqual([undefined, 'b']);
  });
});

describe('overlap', () => {
  const of = (text: string) => [...text].map((one) => line(one));

  it('finds the longest end that comes once more', () => {
    expect(overlap(of('abcde'), of('cdefg'))).toBe(3);
    expect(overlap(of('abc'), of('abcd'))).toBe(3);
    expect(overlap(of('aabaa'), of('aab'))).toBe(2);
  });

  it('finds nothing where lines are missing', () => {
    expect(overlap(of('abc'), of('xyz'))).toBe(0);
    expect(overlap([], of('a'))).toBe(0);
    expect(overlap(of('a'), [])).toBe(0);
  });

  it('tells lines of the same text apart by their time', () => {
    const at = (second: number) => line('tick', `2026-11-21T10:00:0${second}Z`);
    expect(overlap([at(1), at(2)], [at(2), at(3)])).toBe(1);
    expect(overlap([at(1)], [at(2)])).toBe(0);
  });
});

describe('written', () => {
  it('is text with its time and where it comes from', () => {
    const told = lineOf({ message: '\u001b[31moh\u001b[0m', timestamp: '2026-11-21T10:00:00.5Z', stream: 'stderr' });
    expect(written(told, { times: true })).toBe('2026-11-21T10:00:00.500Z [stderr] oh');
    expect(written(told, { times: false })).toBe('[stderr] oh');
    expect(written(note('dropped', '3 lines'), { times: true })).toBe('--- 3 lines ---');
  });
});
