import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { divided, Intake, pieces, Typing } from './flow';

const MEGABYTE = 'x'.repeat(1024 * 1024);

describe('what comes', () => {
  it('is drawn as it comes while the screen follows', () => {
    const drawn: string[] = [];
    const intake = new Intake((text, done) => {
      drawn.push(text);
      done();
    });

    for (let index = 0; index < 20; index += 1) intake.add(MEGABYTE);

    expect(drawn.length).toBe(20);
  });

  it('is left out, and said to be, when the screen falls behind', () => {
    const drawn: string[] = [];
    const waiting: (() => void)[] = [];
    const intake = new Intake((text, done) => {
      drawn.push(text);
      waiting.push(done);
    });

    for (let index = 0; index < 6; index += 1) intake.add(MEGABYTE);
    expect(drawn.length).toBe(4);

    for (const done of waiting.splice(0)) done();
    intake.add('$ ');

    expect(drawn[4]).toContain('2,097,152 characters skipped');
    expect(drawn[5]).toBe('$ ');
  });
});

describe('what is typed', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('can be stopped while it waits, and continues with what is typed later', () => {
    const sent: string[] = [];
    const way = { backlog: 1024 * 1024, send: (text: string) => sent.push(text) > 0 };
    const typing = new Typing(way);

    typing.add('before');
    typing.stop();
    way.backlog = 0;
    typing.add('after');

    expect(sent).toEqual(['after']);
  });

  it('waits while the connection does not take it, and keeps its order', () => {
    const sent: string[] = [];
    const way = {
      backlog: 0,
      send(text: string) {
        sent.push(text);
        this.backlog += text.length * 3;
        return true;
      },
    };
    const typing = new Typing(way);
    const text = Array.from({ length: 9000 }, (_, index) => `${index} `).join('');

    typing.add(text);
    typing.add('last');
    expect(sent.join('').length).toBeLessThan(text.length);
    while (vi.getTimerCount() > 0) {
      way.backlog = 0;
      vi.runOnlyPendingTimers();
    }

    expect(sent.join('')).toBe(`${text}last`);
  });

  it('cuts no character in two', () => {
    const text = `x${'😀'.repeat(20_000)}`;

    const found = pieces(text);

    expect(found.join('')).toBe(text);
    for (const piece of found) expect(() => encodeURIComponent(piece)).not.toThrow();
  });
});

describe('a text that is divided', () => {
  it.each([
    [-3, '', 'aä€😀'],
    [0, '', 'aä€😀'],
    [1, 'a', 'ä€😀'],
    [6, 'aä€', '😀'],
    [10, 'aä€😀', ''],
    [99, 'aä€😀', ''],
  ])('has %i bytes before', (bytes, before, after) => {
    expect(divided('aä€😀', bytes)).toEqual([before, after]);
  });
});
