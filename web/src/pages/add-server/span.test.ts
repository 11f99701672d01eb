import { describe, expect, it } from 'vitest';
import { spanSince } from './span';

describe('the charts of a server that was just added', () => {
  it('begin with the first sample, into which the line grows', () => {
    expect(spanSince(1_000, 1_004)).toEqual({ from: 1_000, to: 1_020 });
    expect(spanSince(1_000, 1_100)).toEqual({ from: 1_000, to: 1_100 });
  });

  it('show a quarter of an hour at most, and something before there is any', () => {
    expect(spanSince(1_000, 5_000)).toEqual({ from: 4_100, to: 5_000 });
    expect(spanSince(undefined, 5_000)).toEqual({ from: 5_000, to: 5_020 });
  });
});
