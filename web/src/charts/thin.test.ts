import { describe, expect, it } from 'vitest';
import type { Column } from './series';
import { before, stepOf, thin } from './thin';

function column(values: (number | null)[]): Column {
  return { avg: [...values], min: [...values], max: [...values] };
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);

describe('thinned columns', () => {
  it('are those that were given where there is room for them', () => {
    const given = column([1, 2, 3]);

    const made = thin([0, 5, 10], [{ column: given, hasBand: true }], { from: 0, to: 10 }, 100);

    expect(made.step).toBeNull();
    expect(made.columns[0]).toBe(given);
  });

  it('have at most as many points as there is room for, and one more at each edge', () => {
    for (const most of [100, 205, 333]) {
      const times = upTo(9_000).map((index) => 1_800_000_000 + index);
      const span = { from: 1_800_000_100, to: 1_800_008_900 };

      const made = thin(times, [{ column: column(upTo(9_000)), hasBand: true }], span, most);

      expect(made.times.length).toBeLessThanOrEqual(most + 3);
      expect(made.times.length).toBeGreaterThan(most / 4);
    }
  });

  it('keep every peak', () => {
    const values = upTo(1_000).map((index) => (index === 777 ? 99 : 1));
    const lines = [{ column: column(values), hasBand: true }, { column: column(values) }];

    const made = thin(upTo(1_000), lines, { from: 0, to: 1_000 }, 100);

    const [banded, plain] = made.columns;
    expect(Math.max(...(banded?.max ?? []).map(Number))).toBe(99);
    expect(Math.max(...(banded?.avg ?? []).map(Number))).toBeLessThan(20);
    expect(Math.max(...(plain?.avg ?? []).map(Number))).toBe(99);
  });

  it('have the mean of what each point stands for', () => {
    const made = thin(upTo(100), [{ column: column(upTo(100)), hasBand: true }], { from: 0, to: 100 }, 10);

    expect(made.step).toBe(10);
    expect(made.columns[0]?.avg[0]).toBe(4.5);
    expect([made.columns[0]?.min[0], made.columns[0]?.max[0]]).toEqual([0, 9]);
  });

  it('break where there is nothing, and end where the samples do', () => {
    const times = [...upTo(50), 50, ...upTo(52).map((index) => 200 + index)];
    const values = [...upTo(50).map(() => 1), null, ...upTo(52).map(() => 1)];

    const made = thin(times, [{ column: column(values), hasBand: true }], { from: 0, to: 252 }, 26);

    const broken = made.columns[0]?.avg.map((value, place) => (value === null ? made.times[place] : null));
    expect(broken?.some((at) => at !== null && at !== undefined && at >= 50 && at < 200)).toBe(true);
    expect(made.times.at(-1)).toBe(251);
    expect([...made.times].sort((one, other) => one - other)).toEqual(made.times);
  });

  it('are divided at times that people know', () => {
    expect(stepOf({ from: 0, to: 900 }, 205)).toBe(5);
    expect(stepOf({ from: 0, to: 86_400 }, 205)).toBe(600);
    expect(stepOf({ from: 0, to: 365 * 86_400 }, 205)).toBe(2 * 86_400);
  });
});

describe('the day before', () => {
  it('is at the times of today, where it was measured', () => {
    const table = { times: [0, 10, 20, 60], column: column([1, 2, 3, 4]) };

    const made = before(table, [86_401, 86_409, 86_421, 86_440, 86_462], 86_400, 5);

    expect(made.avg).toEqual([1, 2, 3, null, 4]);
  });

  it('is nothing where nothing was measured', () => {
    expect(before({ times: [], column: column([]) }, [1, 2], 1, 5).avg).toEqual([null, null]);
  });
});
