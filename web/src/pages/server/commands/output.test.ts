import { describe, expect, it } from 'vitest';
import { OutputLog, textOf } from './output';

const HALF = 512 * 1024;
const text = (log: OutputLog) => textOf(log.show());

describe('output', () => {
  it('adds nothing when a socket that came back tells everything again', () => {
    const log = new OutputLog();
    log.add('stdout', 'one\n', 0);
    log.add('stderr', 'two\n', 4);

    log.add('stdout', 'one\n', 0);
    log.add('stderr', 'two\nthree\n', 4);

    expect(text(log)).toBe('one\ntwo\nthree\n');
  });

  it('counts places in bytes, not in characters', () => {
    const log = new OutputLog();
    log.add('stdout', 'höhe ', 0);

    log.add('stdout', 'höhe €10\n', 0);

    expect(text(log)).toBe('höhe €10\n');
  });

  it('marks what the service did not keep', () => {
    const log = new OutputLog();
    log.add('stdout', 'begin\n', 0);
    log.add('stdout', 'end\n', 1006);

    expect(log.show()).toMatchObject({ leftOut: 1000, leftOutAt: 1 });
    expect(text(log)).toBe('begin\n\n[... 1000 bytes omitted ...]\nend\n');
  });

  it('keeps the beginning and the end of what never ends', () => {
    const log = new OutputLog();
    const line = `${'x'.repeat(1023)}\n`;
    for (let index = 0; index < 4096; index += 1) log.add('stdout', line);

    const shown = log.show();
    const kept = shown.blocks.reduce((sum, block) => sum + block.bytes, 0);
    expect(kept + shown.leftOut).toBe(4096 * 1024);
    expect(kept).toBeGreaterThanOrEqual(2 * HALF);
    expect(kept).toBeLessThan(2 * HALF + 64 * 1024);
  });

  it('shows the same block again when nothing was added to it', () => {
    const log = new OutputLog();
    for (let index = 0; index < 1100; index += 1) log.add('stdout', `${index}\n`);
    const before = log.show().blocks;

    log.add('stdout', 'more\n');

    const after = log.show().blocks;
    expect(after.length).toBe(3);
    expect(after[0]).toBe(before[0]);
    expect(after[2]).not.toBe(before[2]);
  });

  it('cuts a line that does not end, and breaks no character', () => {
    const log = new OutputLog();
    log.add('stdout', '😀'.repeat(60_000));

    expect(text(log)).toBe('😀'.repeat(60_000));
    expect(log.show().blocks.length).toBeGreaterThan(1);
  });

  it('counts a last line that is not finished', () => {
    const log = new OutputLog();
    log.add('stdout', 'one\ntwo');
    expect(log.show().lines).toBe(2);

    log.add('stdout', '\n');

    expect(log.show().lines).toBe(2);
  });

  it('tells the streams apart', () => {
    const log = new OutputLog();
    log.add('stdout', 'a');
    log.add('stderr', 'b');

    expect(log.show().blocks[0]?.parts.map((part) => part.stream)).toEqual(['stdout', 'stderr']);
    expect(log.show().hasErrors).toBe(true);
  });
});
