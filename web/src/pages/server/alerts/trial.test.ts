import { describe, expect, it } from 'vitest';
import { firingSeconds, pausesOf, pointsOf, tryOut, type Point, type Rule } from './trial';

const OVER_90: Rule = { comparison: 'gt', value: 90, clear: null, seconds: 0 };

/** Samples ten seconds apart. */
function samples(...values: number[]): Point[] {
  return values.map((value, place) => ({ at: place * 10, mildest: value, worst: value }));
}

const times = (points: Point[], rule: Rule, now = 1_000) =>
  tryOut(points, rule, 0, now).firings.map(({ from, to }) => [from, to]);

describe('a sample at a time', () => {
  it('fires when it crosses and ends when it does not', () => {
    expect(times(samples(50, 95, 97, 80, 91, 90), OVER_90)).toEqual([
      [10, 30],
      [40, 50],
    ]);
  });

  it('knows each comparison', () => {
    const at = (comparison: Rule['comparison']) =>
      tryOut(samples(89, 90, 91), { ...OVER_90, comparison }, 0, 30).firings.map((firing) => firing.from);

    expect(at('gt')).toEqual([20]);
    expect(at('gte')).toEqual([10]);
    expect(at('lt')).toEqual([0]);
    expect(at('lte')).toEqual([0]);
    expect(tryOut(samples(89, 90, 91), { ...OVER_90, comparison: 'lte' }, 0, 30).firings[0]?.to).toBe(20);
  });

  it('fires only when it has held for long enough', () => {
    const rule = { ...OVER_90, seconds: 20 };

    expect(times(samples(95, 95, 80, 95, 95, 95, 95, 10), rule)).toEqual([[50, 70]]);
  });

  it('lasts until the clear value', () => {
    const rule = { ...OVER_90, clear: 80 };

    expect(times(samples(95, 85, 95, 81, 80, 85), rule)).toEqual([[0, 40]]);
  });

  it('is open while it has not recovered', () => {
    expect(tryOut(samples(10, 95), OVER_90, 0, 60).firings).toEqual([{ from: 10, to: 60, isOpen: true }]);
  });

  it('does not recover by a gap', () => {
    const points = [...samples(95, 95), { at: 5_000, mildest: 95, worst: 95 }, { at: 5_010, mildest: 1, worst: 1 }];

    expect(times(points, OVER_90)).toEqual([[0, 5_010]]);
  });

  it('begins a new run after a long gap', () => {
    const rule = { ...OVER_90, seconds: 60 };
    const run = (from: number) => [0, 10, 20, 30].map((at) => ({ at: from + at, mildest: 95, worst: 95 }));

    expect(times([...run(0), ...run(100)], rule)).toEqual([[100, 1_000]]);
    expect(times([...run(0), ...run(600)], rule)).toEqual([]);
  });

  it('tells the worst and since when', () => {
    expect(tryOut(samples(10, 95, 3), OVER_90, 0, 60)).toMatchObject({ since: 0, worst: 95 });
    expect(tryOut(samples(10, 95, 3), { ...OVER_90, comparison: 'lt' }, 0, 60).worst).toBe(3);
    expect(tryOut([], OVER_90, 0, 60)).toEqual({ firings: [], since: null, worst: null });
  });
});

describe('a minute at a time', () => {
  const minutes = (...pairs: [mildest: number, worst: number][]): Point[] =>
    pairs.map(([mildest, worst], place) => ({ at: place * 60, mildest, worst }));

  it('sees a peak within a minute', () => {
    const { firings } = tryOut(minutes([10, 20], [10, 95], [10, 20]), OVER_90, 60, 180);

    expect(firings).toEqual([{ from: 60, to: 120, isOpen: false }]);
  });

  it('counts on whole minutes alone when it must hold', () => {
    const rule = { ...OVER_90, seconds: 120 };
    const { firings } = tryOut(minutes([10, 95], [92, 95], [91, 99], [93, 94], [40, 95], [10, 20]), rule, 60, 360);

    expect(firings).toEqual([{ from: 180, to: 240, isOpen: false }]);
  });
});

describe('all targets', () => {
  const column = (...avg: (number | null)[]) => ({ avg, min: avg, max: avg });

  it('takes the worst of all at each time', () => {
    const table = { times: [0, 10, 20] };
    const columns = [column(50, 95, null), column(96, 20, null)];

    expect(pointsOf(table, columns, 'gt').map((point) => point.worst)).toEqual([96, 95]);
    expect(pointsOf(table, columns, 'lt').map((point) => point.worst)).toEqual([50, 20]);
  });

  it('fires once though one target takes over from another', () => {
    const points = pointsOf({ times: [0, 10, 20] }, [column(95, 95, 10), column(10, 95, 96)], 'gt');

    expect(tryOut(points, OVER_90, 0, 30).firings).toHaveLength(1);
  });

  it('keeps the least and the greatest apart', () => {
    const one = { avg: [50], min: [40], max: [60] };
    const other = { avg: [45], min: [44], max: [46] };

    expect(pointsOf({ times: [0] }, [one, other], 'gt')).toEqual([{ at: 0, mildest: 44, worst: 60 }]);
    expect(pointsOf({ times: [0] }, [one, other], 'lt')).toEqual([{ at: 0, mildest: 46, worst: 40 }]);
  });
});

it('adds up how long it fired', () => {
  expect(
    firingSeconds([
      { from: 0, to: 60, isOpen: false },
      { from: 100, to: 130, isOpen: true },
    ]),
  ).toBe(90);
});

it('finds when nothing was measured', () => {
  expect(pausesOf([0, 10, 400, 410], 120, 420)).toEqual([{ from: 10, to: 400, isOpen: false }]);
  expect(pausesOf([0, 10], 120, 500)).toEqual([{ from: 10, to: 500, isOpen: true }]);
  expect(pausesOf([], 120, 500)).toEqual([]);
});
