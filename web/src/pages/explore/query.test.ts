import { expect, it } from 'vitest';
import {
  addressOf,
  definitionOf,
  hrefOf,
  queryOf,
  queryOfDefinition,
  rangeOfWords,
  USUAL_RANGE,
  type Query,
} from './query';

const ID = '019aa0b8-7d1c-7e3a-9c61-0d5f8f3f2b10';
const query = (text: string): Query => queryOf(new URLSearchParams(text));

it('reads an address as charts write it', () => {
  expect(query(`server=${ID}&s=cpu_percent&tag=web&fn=avg&by=server&top=5&range=24h`)).toEqual({
    series: ['cpu_percent'],
    servers: [ID],
    tag: 'web',
    fn: 'avg',
    by: 'server',
    top: 5,
    rank: 'max',
    range: USUAL_RANGE,
    events: true,
  });
});

it('leaves aside what makes no sense', () => {
  const usual = query('');

  expect(query('fn=median&by=rack&top=0&rank=first&range=2q&s=,,&server=')).toEqual(usual);
  expect(query('top=101').top).toBe(usual.top);
  expect(query('s=a,b,c,d,e,f,g,h,i,a').series).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']);
});

it('writes an address that reads as the same', () => {
  for (const text of [
    '',
    's=cpu_percent',
    `s=disk_percent:*,load_1&server=${ID}&by=series&rank=last&top=3&range=7d&events=0`,
    's=disk_percent:/mnt/a%252Cb,load_1',
    's=cpu_percent&tag=a%20%26%20b&fn=sum&by=none&from=2026-11-21T03:00:00Z&to=2026-11-21T03:20:00Z',
  ]) {
    const read = query(text);
    const href = hrefOf(read);

    expect(queryOf(new URL(href, 'https://box').searchParams)).toEqual(read);
  }
  expect(hrefOf(query(''))).toBe('/explore');
  expect(hrefOf(query('s=disk_percent:/,load_1&range=24h'))).toBe('/explore?s=disk_percent:%2F,load_1');
  expect(query('s=disk_percent:/mnt/a%252Cb,load_1').series).toEqual(['disk_percent:/mnt/a,b', 'load_1']);
  expect(addressOf(query('by=tag')).by).toBe('tag');
});

it('keeps a chart as a view and shows the same again', () => {
  for (const text of [
    's=cpu_percent',
    `s=load_1&server=${ID}&tag=db&fn=max&by=tag&range=30d`,
    's=a&from=2026-11-21T03:00:00Z&to=2026-11-21T03:20:00Z',
    's=a&range=2d',
    's=a&range=90m',
  ]) {
    const shown = query(text);

    expect(queryOfDefinition(definitionOf(shown))).toEqual(shown);
  }
  expect(definitionOf(query('s=a&from=2026-11-21T03:00:00Z&to=2026-11-21T03:20:00Z'))).toMatchObject({
    version: 1,
    range: null,
    start: '2026-11-21T03:00:00.000Z',
    end: '2026-11-21T03:20:00.000Z',
  });
});

it('keeps a range that somebody typed, and no other one in its place', () => {
  expect(definitionOf(query('s=a&range=2d')).range).toBe('2d');
  expect(definitionOf(query('s=a&range=24h')).range).toBe('24h');
  expect(definitionOf(query('s=a&range=2d'))).not.toEqual(definitionOf(query('s=a')));
});

it('knows the ranges of layouts', () => {
  expect(rangeOfWords('7d')).toEqual({ kind: 'live', seconds: 7 * 86_400 });
  expect(rangeOfWords(null)).toBeNull();
  expect(rangeOfWords('2w')).toEqual({ kind: 'live', seconds: 14 * 86_400 });
  expect(rangeOfWords('2q')).toBeNull();
});
