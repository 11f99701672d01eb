import { describe, expect, it } from 'vitest';
import { Merger } from './merge';

describe('lines of several logs', () => {
  it('stand in the order of their time, though they came in another', () => {
    const merger = new Merger<string>(100);
    merger.add('b', 2, 0);
    merger.add('a', 1, 50);
    expect(merger.take(90)).toEqual([]);
    expect(merger.take(100)).toEqual(['a', 'b']);
    expect(merger.isEmpty).toBe(true);
  });

  it('wait no longer than the window for one that is younger', () => {
    const merger = new Merger<string>(100);
    merger.add('a', 1, 0);
    merger.add('c', 3, 80);
    expect(merger.take(120)).toEqual(['a']);
    expect(merger.add('b', 2, 130)).toBe(false);
    expect(merger.take(240)).toEqual(['b', 'c']);
  });

  it('that come after their place was passed are known as late', () => {
    const merger = new Merger<string>(100);
    merger.add('b', 2, 0);
    merger.take(100);
    expect(merger.add('a', 1, 200)).toBe(true);
    expect(merger.take(300)).toEqual(['a']);
    merger.restart(0);
    expect(merger.add('a', 1, 400)).toBe(false);
  });

  it('of the same time stay as they came', () => {
    const merger = new Merger<string>(0);
    for (const name of ['x', 'y', 'z']) merger.add(name, 7, 0);
    expect(merger.drain()).toEqual(['x', 'y', 'z']);
  });

  it('are not held back without a bound', () => {
    const merger = new Merger<number>(1_000);
    for (let index = 0; index <= 20_000; index += 1) merger.add(index, index, 0);
    expect(merger.take(1)).toHaveLength(20_001);
  });
});
