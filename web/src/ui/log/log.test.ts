import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Line } from './lines';
import { rows, lines as linesOf, log as logWith } from './testing';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('levels', () => {
  it('are counted as lines are read, and leave with them', async () => {
    const log = logWith(3);
    log.push(linesOf('ERROR a', 'INFO b', 'c'));
    await vi.runAllTimersAsync();
    log.settle();
    expect([log.levelsOf.counts.error, log.levelsOf.counts.info]).toEqual([1, 1]);

    log.push(linesOf('WARN d'));
    await vi.runAllTimersAsync();
    log.settle();
    expect([log.levelsOf.counts.error, log.levelsOf.counts.warn]).toEqual([0, 1]);
  });

  it('narrow what is shown, also of lines that come later', async () => {
    const log = logWith();
    log.push(linesOf('ERROR a', 'INFO b'));
    await vi.runAllTimersAsync();
    log.narrow({ levels: new Set(['error'] as const) });
    expect(rows(log)).toEqual(['ERROR a']);

    log.push(linesOf('INFO c', 'ERROR d', '  at somewhere'));
    await vi.runAllTimersAsync();
    expect(rows(log)).toEqual(['ERROR a', 'ERROR d', '  at somewhere']);
    log.narrow({ levels: new Set() });
    expect(rows(log)).toHaveLength(5);
  });

  it('of a hundred thousand lines are read a slice at a time', async () => {
    const log = logWith(100_000);
    log.push(linesOf(...Array.from({ length: 100_000 }, (_, index) => `${index % 2 ? 'ERROR' : 'INFO'} ${index}`)));
    expect(log.levelsOf.next).toBe(0);
    await vi.runAllTimersAsync();
    log.settle();
    expect(log.levelsOf.counts.error).toBe(50_000);
  });
});

describe('a time', () => {
  it('narrows what is shown; lines without one are not of it', () => {
    const log = logWith();
    log.push(linesOf('a@1000', 'b@2000', 'c@3000', 'd'));
    log.narrow({ span: { from: 1_500, to: 3_000 } });
    expect(rows(log)).toEqual(['b']);
    log.narrow({ span: null });
    expect(rows(log)).toHaveLength(4);
  });

  it('has bars by level', async () => {
    const log = logWith();
    log.push(linesOf('ERROR a@0', 'INFO b@1000', 'INFO c@9999', 'no time'));
    await vi.runAllTimersAsync();
    const found = log.levelsOf.histogram(10);
    expect(found?.step).toBe(1_000);
    expect([...(found?.bars[1] ?? [])]).toEqual([1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    expect([...(found?.bars[3] ?? [])]).toEqual([0, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
  });
});

describe('lines that continue one', () => {
  const trace = ['ERROR boom', '\tat a', '\tat b', '\tat c', '\tat d', '\tat e', 'INFO next'];

  it('are folded after the third, and open', () => {
    const log = logWith();
    log.push(linesOf(...trace));
    expect(rows(log)).toEqual(['ERROR boom', '\tat a', '\tat b', '\tat c', 'INFO next']);
    expect(log.foldAt(3)).toEqual({ count: 2, isOpen: false });

    log.unfold(3);
    expect(rows(log)).toEqual(trace);
    expect(log.foldAt(3)).toEqual({ count: 2, isOpen: true });
  });

  it('are copied with it, and saved', () => {
    const log = logWith();
    log.push(linesOf(...trace));
    expect(log.whole(0).map((line) => line.plain)).toEqual(trace.slice(0, 6));
    expect(log.file()).toHaveLength(7);
  });

  it('have its level', () => {
    const log = logWith();
    log.push(linesOf(...trace));
    expect(log.levelsOf.of(5)).toBe('error');
    expect(log.levelsOf.of(6)).toBe('info');
  });

  it('are what was thrown, behind the line that says what went wrong', () => {
    const log = logWith();
    log.push(
      linesOf('ERROR no order@1000', 'java.lang.X: Exception', 'java.sql.SQLException: gone', '\tat a', 'INFO on@1001'),
    );
    expect([1, 2, 3, 4].map((number) => log.isContinuation(number))).toEqual([false, false, true, false]);
    log.push(linesOf('ERROR no order@2000', 'java.sql.SQLException: gone', '\tat a', 'INFO on@2001'));
    expect([6, 7, 8].map((number) => log.isContinuation(number))).toEqual([true, true, false]);
  });

  it('count as one with it', async () => {
    const log = logWith(4);
    log.push(linesOf('ERROR boom', '\tat a', '\tat b'));
    await vi.runAllTimersAsync();
    log.settle();
    expect(log.levelsOf.counts.error).toBe(1);
    log.push(linesOf('INFO a', 'INFO b', 'INFO c'));
    await vi.runAllTimersAsync();
    log.settle();
    expect([log.levelsOf.counts.error, log.levelsOf.counts.info]).toEqual([0, 3]);
  });

  it('are none of another log, nor of another time', () => {
    const log = logWith();
    log.push(linesOf('one@1000', '  two@1100', '  later@9000'));
    expect([0, 1, 2].map((number) => log.isContinuation(number))).toEqual([false, true, false]);
  });
});

it('other lines take the place of those that are held, also while it is paused', () => {
  const log = logWith();
  log.push(linesOf('b'));
  log.pause();
  log.push(linesOf('c'));
  log.replace(linesOf('a', 'b'));
  log.settle();
  expect([rows(log), log.aside]).toEqual([['a', 'b'], 1]);
  log.resume();
  expect(rows(log)).toEqual(['a', 'b', 'c']);
});

it('the cursor and a line that is open stay at their lines when others take their place between these', () => {
  const log = logWith();
  const [a, b, c, d] = linesOf('a', 'b', 'c', 'd') as [Line, Line, Line, Line];
  const nothing = () => undefined;
  let anchor = 2;
  log.drawnBy(nothing, nothing, nothing, (numbers) => (anchor = numbers.near(anchor)));
  log.push([a, c, d]);
  log.toggle(1);
  log.cursor = 2;
  const lineAt = (number: number | null) => log.lines.get(number ?? -1)?.plain;

  log.replace([a, b, c, d]);
  expect([lineAt(log.cursor), lineAt(anchor)]).toEqual(['d', 'd']);
  expect([3, 4, 5, 6].filter((number) => log.isOpen(number)).map(lineAt)).toEqual(['c']);

  // Of what is gone, nothing is left.
  log.cursor = 5;
  log.replace([a, b]);
  expect([log.cursor, log.isOpen(7), log.isOpen(8)]).toEqual([null, false, false]);
});

it('a line that is opened is held where it is, and the end is not followed any more', () => {
  const log = logWith();
  const held: number[] = [];
  const nothing = () => undefined;
  log.drawnBy(nothing, nothing, (number) => held.push(number), nothing);
  log.push(linesOf('a', 'b'));

  log.toggle(1);
  expect([log.isOpen(1), log.isFollowing, log.cursor, held]).toEqual([true, false, 1, [1]]);

  // Closing it is no wish to leave the end.
  log.toEnd();
  log.toggle(1);
  expect([log.isOpen(1), log.isFollowing]).toEqual([false, true]);
});

it('the cursor moves over rows, and stays at the ends', () => {
  const log = logWith();
  log.push(linesOf('a', 'b', 'c'));
  expect([log.move(1, 0), log.move(1, 0), log.move(-5, 0), log.move(9, 0)]).toEqual([0, 1, 0, 2]);
});
