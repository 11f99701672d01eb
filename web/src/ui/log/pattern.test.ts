import { describe, expect, it } from 'vitest';
import { answer, compile, find } from './pattern';

const ranges = (text: string, isRegex: boolean, line: string) => {
  const { pattern } = compile(text, isRegex);
  return pattern ? find(pattern, line) : null;
};

describe('compile', () => {
  it('takes plain text as it is', () => {
    expect(ranges('a.b(', false, 'axb a.b(')).toEqual([[4, 8]]);
  });

  it('searches in either case unless there is a capital letter', () => {
    expect(ranges('error', false, 'ERROR error')).toHaveLength(2);
    expect(ranges('Error', false, 'ERROR Error')).toEqual([[6, 11]]);
    expect(ranges('\\Sx', true, 'aX')).toHaveLength(1);
  });

  it('says what is wrong with an expression', () => {
    expect(compile('((', true).fault).toBe('Not a valid regular expression: Unterminated group.');
  });
});

describe('find', () => {
  it('ends with what matches nothing', () => {
    expect(ranges('x*', true, 'axxb')).toEqual([[1, 3]]);
  });
});

describe('answer', () => {
  it('names the texts that match', () => {
    const told = answer({ search: 4, source: 'b', flags: 'gi', texts: ['a', 'B', 'ab'] });
    expect(told.search).toBe(4);
    expect(told.hits.map((hit) => (hit < 0 ? ~hit : hit))).toEqual([1, 2]);
  });
});
