import { describe, expect, it } from 'vitest';
import { gridOf, squareAt, strength } from './dots';

describe('the squares of many servers', () => {
  it('all fit, as large as whole pixels allow', () => {
    for (const [count, width, height] of [
      [1_000, 1_100, 760],
      [10_000, 1_100, 760],
      [10_000, 360, 600],
      [50_000, 1_100, 760],
      [7, 1_100, 760],
    ] as const) {
      const { columns, rows, step, size } = gridOf(count, width, height);

      expect(columns * rows).toBeGreaterThanOrEqual(count);
      expect(columns * step).toBeLessThanOrEqual(width);
      expect(rows * step).toBeLessThanOrEqual(height);
      expect(size).toBeGreaterThan(0);
      const larger = step + 1;
      if (step < 28) expect(Math.floor(width / larger) * Math.floor(height / larger)).toBeLessThan(count);
    }
  });

  it('still fit where there are more of them than pixels, and where there is no room', () => {
    const { columns, rows, step } = gridOf(10_000, 80, 60);
    expect(columns * rows).toBeGreaterThanOrEqual(10_000);
    expect(step).toBeLessThan(1);
    expect(gridOf(10, 0, 0).step).toBe(1);
    expect(gridOf(0, 100, 100).columns).toBe(1);
  });

  it('are found by a point', () => {
    const grid = gridOf(10, 100, 40);

    expect(squareAt(grid, 10, 0, 0)).toBe(0);
    expect(squareAt(grid, 10, grid.step * 1.5, 0)).toBe(1);
    expect(squareAt(grid, 10, 0, grid.step * 1.5)).toBe(grid.columns);
    for (const [x, y] of [
      [-1, 0],
      [grid.columns * grid.step, 0],
      [0, 400],
    ] as const)
      expect(squareAt(grid, 10, x, y)).toBeNull();
  });

  it('are stronger the busier their servers are', () => {
    const found = [null, -5, 0, 50, 100, 400].map((cpu) => Math.round(strength(cpu) * 100));

    expect(found).toEqual([30, 30, 30, 65, 100, 100]);
  });
});
