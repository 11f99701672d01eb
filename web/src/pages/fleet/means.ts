import { BIN_SECONDS, type Columns } from '../../charts/sparklineCourse';

/** The mean of several courses in each minute, of those that have a value there. */
export function meansOf(all: readonly Columns[]): Columns {
  const sums = new Map<number, { sum: number; count: number }>();
  for (const { resolution_seconds, timestamps, avg } of all) {
    const width = Math.max(1, Math.ceil(resolution_seconds / BIN_SECONDS));
    for (const [index, at] of timestamps.entries()) {
      const value = avg[index];
      if (value === null || value === undefined) continue;
      const first = Math.floor(at / BIN_SECONDS);
      for (let bin = first; bin < first + width; bin += 1) {
        const found = sums.get(bin);
        if (found) {
          found.sum += value;
          found.count += 1;
        } else sums.set(bin, { sum: value, count: 1 });
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
