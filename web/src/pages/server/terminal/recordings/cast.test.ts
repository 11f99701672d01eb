// @vitest-environment node
import { describe, expect, it } from 'vitest';
import { parseCast, sizesOf } from './cast';

const FIRST = '{"version":2,"width":100,"height":30,"timestamp":1700000000,"by":"ada from ::1"}';
const cast = (...lines: string[]) => parseCast([FIRST, ...lines].join('\n'));

describe('the first line of a recording', () => {
  it('says the size, when it began and who opened the terminal', () => {
    expect(cast('')).toEqual({
      size: { columns: 100, rows: 30 },
      startedAt: 1_700_000_000_000,
      by: 'ada from ::1',
      events: [],
      unreadable: 0,
    });
  });

  it('needs no more than a size', () => {
    const found = parseCast('{"version":2,"width":80,"height":24,"timestamp":"soon","by":7}');

    expect([found?.startedAt, found?.by]).toEqual([null, null]);
  });

  it('has no time where that is no date', () => {
    const startedAt = (timestamp: string) =>
      parseCast(`{"version":2,"width":80,"height":24,"timestamp":${timestamp}}`)?.startedAt;

    expect(startedAt('-1')).toBe(-1000);
    for (const timestamp of ['8.64e12', '8.6399e12', '-8.65e12', '1e300', '1e999'])
      expect(startedAt(timestamp)).toBeNull();
  });

  it('names who opened the terminal without control characters, and not at any length', () => {
    const by = (text: string) => parseCast(JSON.stringify({ version: 2, width: 80, height: 24, by: text }))?.by;

    expect(by('a\u0000d\u001b[0ma\u202e from\n ::1\u2028')).toBe('ad[0ma from ::1');
    expect(by(' \u0007\n')).toBeNull();
    expect(by('x'.repeat(1_000_000))).toBe('x'.repeat(200));
    expect(by('👩'.repeat(300))).toBe('👩'.repeat(200));
  });

  it('has a size that a page can show', () => {
    const size = (width: number, height: number) => parseCast(JSON.stringify({ version: 2, width, height }))?.size;

    expect(size(1000, 1000)).toEqual({ columns: 1000, rows: 100 });
    expect(size(100, 1000)).toEqual({ columns: 100, rows: 1000 });
    expect(size(2, 1000)).toEqual({ columns: 10, rows: 1000 });
  });

  it('is refused where it is another one', () => {
    for (const line of [
      '',
      '<html>',
      '[0.1,"o","x"]',
      'null',
      '{"version":1,"width":80,"height":24}',
      '{"version":3,"width":80,"height":24}',
      '{"version":2,"width":80}',
      '{"version":2,"width":0,"height":24}',
      '{"version":2,"width":1e9,"height":24}',
      '{"version":2,"width":"80","height":24}',
      '{"version":2,"width":80.5,"height":24}',
    ])
      expect(parseCast(`${line}\n[0.1,"o","x"]\n`), line).toBeNull();
  });
});

describe('the events of a recording', () => {
  it('are what the terminal showed, and its sizes', () => {
    expect(cast('[0.5, "o", "grüße\\r\\n\\u001b[0m"]', '[1.25, "r", "132x43"]', '')?.events).toEqual([
      { seconds: 0.5, output: 'grüße\r\n\x1b[0m' },
      { seconds: 1.25, size: { columns: 132, rows: 43 } },
    ]);
  });

  it('are never what was typed, nor of a kind that is not known', () => {
    const found = cast('[0.1,"i","hunter2"]', '[0.2,"m","chapter"]', '[0.3,"x","0"]', '[0.4,"o","$ "]');

    expect(found?.events).toEqual([{ seconds: 0.4, output: '$ ' }]);
    expect(found?.unreadable).toBe(0);
  });

  it('stay where the last line is cut off', () => {
    const found = cast('[0.1,"o","whole"]', '[0.2,"o","cut of');

    expect(found?.events).toEqual([{ seconds: 0.1, output: 'whole' }]);
    expect(found?.unreadable).toBe(1);
  });

  it('stay where lines between them are no events', () => {
    const broken = ['nonsense', '{}', '[]', '["1","o","x"]', '[1,"o"]', '[1,"o",7]', '[1e999,"o","x"]'];
    const sizes = ['[1,"r","0x24"]', '[1,"r","80"]', '[1,"r","9999x24"]', '[1,"r","80x24; reboot"]'];

    const found = cast('[0.1,"o","a"]', ...broken, '', ...sizes, '[0.2,"o","b"]');

    expect(found?.events.map((event) => event.seconds)).toEqual([0.1, 0.2]);
    expect(found?.unreadable).toBe(broken.length + sizes.length);
  });

  it('are none where the time is that of no terminal', () => {
    const found = cast('[1e13,"o","late"]', '[320000000,"r","80x24"]', '[315360000,"o","ten years"]');

    expect(found?.events.map((event) => event.seconds)).toEqual([315_360_000]);
    expect(found?.unreadable).toBe(2);
  });

  it('have no size that a page cannot show', () => {
    const found = cast('[1,"r","9x24"]', '[2,"r","1000x1000"]', '[3,"r","10x1000"]');

    expect(found?.events).toEqual([
      { seconds: 2, size: { columns: 1000, rows: 100 } },
      { seconds: 3, size: { columns: 10, rows: 1000 } },
    ]);
    expect(found?.unreadable).toBe(0);
  });

  it('have times that never go back', () => {
    const found = cast('[-3,"o","a"]', '[2,"o","b"]', '[1,"o","c"]', '[3,"o","d"]');

    expect(found?.events.map((event) => event.seconds)).toEqual([0, 2, 2, 3]);
  });

  it('are read in a file with lines of another system', () => {
    expect(parseCast(`${FIRST}\r\n[0.1,"o","a"]\r\n`)?.events).toEqual([{ seconds: 0.1, output: 'a' }]);
  });
});

it('the highest sizes of a recording are each there once', () => {
  const found = cast('[1,"r","132x43"]', '[2,"o","x"]', '[3,"r","100x30"]', '[4,"r","132x43"]');

  expect(found && sizesOf(found)).toEqual([
    { columns: 132, rows: 43 },
    { columns: 100, rows: 30 },
  ]);

  const many = cast(...Array.from({ length: 500 }, (_, index) => `[1,"r","20x${(index % 50) + 1}"]`));
  expect(many && sizesOf(many).map((size) => size.rows)).toEqual([50, 49, 48, 47, 46, 45, 44, 43]);
});
