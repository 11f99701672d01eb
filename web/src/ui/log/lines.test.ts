import { describe, expect, it } from 'vitest';
import { lineOf, Lines, note, Repetition, written, type Line } from './lines';

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

describe('Repetition', () => {
  const of = (text: string) => [...text].map((one) => line(one));
  const repeated = (held: Line[], coming: Line[]) => {
    const repetition = new Repetition(held);
    const over = coming.map((one) => {
      repetition.push(one);
      return repetition.isOver;
    });
    return { known: repetition.known, over: over.indexOf(true) + 1 };
  };

  it('finds the longest end that comes once more', () => {
    expect(repeated(of('abcde'), of('cdefg')).known).toBe(3);
    expect(repeated(of('abc'), of('abcd')).known).toBe(3);
    expect(repeated(of('aabaa'), of('aab')).known).toBe(2);
  });

  it('finds nothing where lines are missing', () => {
    expect(repeated(of('abc'), of('xyz')).known).toBe(0);
    expect(repeated([], of('a')).known).toBe(0);
    expect(repeated(of('a'), []).known).toBe(0);
  });

  it('is over with the line that leaves no doubt', () => {
    expect(repeated(of('abcde'), of('cdefg')).over).toBe(3);
    expect(repeated(of('abcde'), of('abcd')).over).toBe(0);
    expect(repeated(of('abc'), of('xyz')).over).toBe(1);
    expect(repeated(of('aaaa'), of('aab')).over).toBe(3);
  });

  it('tells lines of the same text apart by their time', () => {
    const at = (second: number) => line('tick', `2026-11-21T10:00:0${second}Z`);
    expect(repeated([at(1), at(2)], [at(2), at(3)]).known).toBe(1);
    expect(repeated([at(1)], [at(2)]).known).toBe(0);
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
