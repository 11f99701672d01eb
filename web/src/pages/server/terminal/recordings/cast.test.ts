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

  it('have times that never go back', () => {
    const found = cast('[-3,"o","a"]', '[2,"o","b"]', '[1,"o","c"]', '[3,"o","d"]');

    expect(found?.events.map((event) => event.seconds)).toEqual([0, 2, 2, 3]);
  });

  it('are read in a file with lines of another system', () => {
    expect(parseCast(`${FIRST}\r\n[0.1,"o","a"]\r\n`)?.events).toEqual([{ seconds: 0.1, output: 'a' }]);
  });
});

it('the sizes of a recording are each there once', () => {
  const found = cast('[1,"r","132x43"]', '[2,"o","x"]', '[3,"r","100x30"]', '[4,"r","132x43"]');

  expect(found && sizesOf(found)).toEqual([
    { columns: 100, rows: 30 },
    { columns: 132, rows: 43 },
  ]);
});
