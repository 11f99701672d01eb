import { BIN_SECONDS, type Columns } from '../../charts/sparklineCourse';

/** A course and how much it counts; without that as much as each other one. */
type Weighted = Columns & { weight?: number | undefined };

/** The mean of several courses in each minute, of those that have a value there. */
export function meansOf(all: readonly Weighted[]): Columns {
  const sums = new Map<number, { sum: number; count: number }>();
  for (const { resolution_seconds, timestamps, avg, weight = 1 } of all) {
    const width = Math.max(1, Math.ceil(resolution_seconds / BIN_SECONDS));
    for (const [index, at] of timestamps.entries()) {
      const value = avg[index];
      if (value === null || value === undefined) continue;
      const first = Math.floor(at / BIN_SECONDS);
      for (let bin = first; bin < first + width; bin += 1) {
        const found = sums.get(bin);
        if (found) {
          found.sum += value * weight;
          found.count += weight;
        } else sums.set(bin, { sum: value * weight, count: weight });
      }
    }
  }
  const bins = [...sums].sort(([a], [b]) => a - b);
  return {
    resolution_seconds: BIN_SECONDS,
    timestamps: bins.map(([bin]) => bin * BIN_SECONDS),
    avg: bins.map(([, { sum, count }]) => sum / count),
  };
}
