import { describe, expect, it } from 'vitest';
import { segments, textOf } from './look';
import { parse, pretty, straight, timeOf } from './structured';

const fieldsOf = (line: string) =>
  Object.fromEntries((parse(line)?.fields() ?? []).map(({ name, value }) => [name, value]));

describe('a line of JSON', () => {
  it('is a message, a level and fields with the way to them', () => {
    const line =
      '{"ts":"2026","level":"warn","msg":"slow","http":{"status":503,"path":"/a"},"tags":["x"],"ok":true,"no":null}';
    expect(parse(line)).toMatchObject({ kind: 'json', message: 'slow', level: 'warn' });
    expect(fieldsOf(line)).toEqual({
      'http.status': '503',
      'http.path': '/a',
      tags: '["x"]',
      ok: 'true',
      no: 'null',
    });
  });

  it('may have no message, and nothing at all', () => {
    expect(parse('{"a":1}')).toMatchObject({ message: '', level: null });
    expect(fieldsOf('{}')).toEqual({});
    expect(segments('{}')).toBeNull();
  });

  it('is text where it is no object, or cut', () => {
    expect([parse('[1,2]'), parse('{"a":'), parse('{oops}'), parse('null')]).toEqual([null, null, null, null]);
  });

  it('has no depth and no length without end', () => {
    const deep = `{"a":${'{"b":'.repeat(5_000)}1${'}'.repeat(5_000)},"msg":"m"}`;
    expect(parse(deep)?.message).toBe('m');
    expect(parse(deep)?.fields()).toHaveLength(1);
    expect(pretty(deep)).toBeNull();
    const wide = JSON.stringify(Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`k${index}`, index])));
    expect(parse(wide)?.fields().length).toBe(200);
    expect(fieldsOf(JSON.stringify({ a: 'x'.repeat(60_000) })).a?.length).toBe(10_001);
  });

  it('takes names as names', () => {
    expect(fieldsOf('{"__proto__":1,"constructor":"x","msg":"m"}')).toMatchObject({ constructor: 'x' });
    expect(({} as Record<string, unknown>).x).toBeUndefined();
  });
});

describe('a line of logfmt', () => {
  it('is a message, a level and fields', () => {
    const line = 'time=2026 level=warn msg="took \\"long\\"" took=3s retry= path=/a?b=c done';
    expect(parse(line)).toMatchObject({ kind: 'logfmt', message: 'took "long"', level: 'warn' });
    expect(fieldsOf(line)).toEqual({ took: '3s', retry: '', path: '/a?b=c' });
  });

  it.each(['a=1 b=2', 'x = y', 'PATH=/bin and then some more words', 'key="open', 'E=mc2', 'a=1'])(
    'is not made of prose: %s',
    (line) => {
      expect(parse(line)).toBeNull();
    },
  );
});

describe('in one row', () => {
  it('the message comes first, then some fields', () => {
    expect(textOf(segments('{"n":1,"msg":"hello\\nworld"}') ?? [])).toBe('hello world  n=1');
    expect(textOf(segments(JSON.stringify({ msg: 'm', ...Array(12).fill('v') })) ?? [])).toMatch(/^m {2}0=v.*\+4$/);
  });

  it('what a terminal or a direction could do is only text', () => {
    const line = JSON.stringify({ msg: '\u001b[31mred\u001b[0m \u202egnp.exe', note: '\u0007' });
    expect(textOf(segments(line) ?? [])).toBe('red \\u202egnp.exe  note=');
    expect(straight('a\u200fb')).toBe('a\\u200fb');
  });
});

it('pretty JSON is for objects alone', () => {
  expect(pretty('{"a":1}')).toBe('{\n  "a": 1\n}');
  expect(pretty('x')).toBeNull();
});

it('a line says when it was written, where it names a zone or counts from the epoch', () => {
  const at = Date.parse('2026-11-24T03:12:00.500Z');
  for (const line of [
    '{"level":"info","timestamp":"2026-11-24T03:12:00.5Z","msg":"m"}',
    '{"ts":1795489920.5,"msg":"m"}',
    '{"time":1795489920500}',
    '{"@timestamp":"2026-11-24 04:12:00,500+01:00"}',
    'time=2026-11-24T03:12:00.5Z level=info',
    'level=info ts="2026-11-24T03:12:00.5Z" msg=m',
  ])
    expect(timeOf(line)).toBe(at);
  for (const line of [
    '{"time":"2026-11-24T03:12:00"}',
    '{"timeout":1795489920}',
    'prose time=1795489920 x',
    '{"time":7}',
    '',
  ])
    expect(timeOf(line)).toBeNull();
});
