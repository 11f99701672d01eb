import { describe, expect, it } from 'vitest';
import { carried, stepsOf, type Step } from './steps';

const entry = (query: string, ...steps: Step[]) => ({ query: new URLSearchParams(query), steps });
const step = (count: number, left: string, came: string, before: Step['before']): Step => ({
  count,
  what: 'range',
  left,
  came,
  before,
});
const noTime = { range: null, from: null, to: null };
const zoom = step(1, '', '?from=1&to=5', noTime);
const closer = step(2, '?from=1&to=5', '?from=2&to=3', { range: null, from: '1', to: '5' });

it('entries that no step led to have none', () => {
  expect(stepsOf(null)).toEqual([]);
  expect(stepsOf({ steps: 'x' })).toEqual([]);
  expect(stepsOf({ steps: [zoom] })).toEqual([zoom]);
});

describe('Back', () => {
  it('shows an entry as it was where nothing was set since', () => {
    expect(carried(entry('from=1&to=5', zoom), entry(''))).toBeNull();
    expect(carried(entry('from=2&to=3', zoom, closer), entry(''))).toBeNull();
  });

  it('changes the time alone where something was set since', () => {
    const query = carried(entry('from=1&to=5&metric=load_1', zoom), entry(''));

    expect(query?.toString()).toBe('metric=load_1');
  });

  it('keeps what was removed since removed', () => {
    const left = step(1, '?tag=web', '?tag=web&from=1&to=5', noTime);

    expect(carried(entry('from=1&to=5', left), entry('tag=web'))?.toString()).toBe('');
  });

  it('over several steps shows the time before the first, with what was set between them', () => {
    const later = { ...closer, left: '?from=1&to=5&peaks=1', came: '?from=2&to=3&peaks=1' };

    expect(carried(entry('from=2&to=3&peaks=1', zoom, later), entry(''))?.toString()).toBe('peaks=1');
    expect(carried(entry('from=2&to=3&peaks=1', zoom, later), entry('from=1&to=5&peaks=1', zoom))).toBeNull();
  });

  it('shows the range that a saved view had, where its series were changed since', () => {
    const ofView = step(1, '?view=v', '?view=v&s=a&from=1&to=5', { range: '1h', from: null, to: null });

    expect(carried(entry('view=v&s=a&from=1&to=5', ofView), entry('view=v'))).toBeNull();
    expect(carried(entry('view=v&s=b&from=1&to=5', ofView), entry('view=v'))?.toString()).toBe('view=v&s=b&range=1h');
  });
});

describe('Forward', () => {
  it('shows an entry as it was, or with what was set since', () => {
    expect(carried(entry(''), entry('from=1&to=5', zoom))).toBeNull();
    expect(carried(entry('peaks=1'), entry('from=1&to=5', zoom))?.toString()).toBe('peaks=1&from=1&to=5');
  });
});

it('what no step lies between is shown as it is', () => {
  expect(carried(entry('a=1'), entry('b=1'))).toBeNull();
  expect(carried(entry('from=1&to=5&a=1', zoom), entry('from=1&to=5', zoom))).toBeNull();
});
