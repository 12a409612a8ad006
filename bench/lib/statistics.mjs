/** @param {number[]} values @returns {number} */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/**
 * The median of every figure of several runs of the same thing, and of the main one the spread.
 * @param {object[]} runs as `measure` returns them
 * @param {string} main
 */
export function summary(runs, main = 'perSecond') {
  const of = (pick) => median(runs.map(pick));
  const names = Object.keys(runs[0].cpu ?? {});
  return {
    runs: runs.length,
    perSecond: of(({ perSecond }) => perSecond),
    p50: of(({ p50 }) => p50),
    p99: of(({ p99 }) => p99),
    lowest: Math.min(...runs.map((run) => run[main])),
    highest: Math.max(...runs.map((run) => run[main])),
    cpu: Object.fromEntries(names.map((name) => [name, of(({ cpu }) => cpu[name])])),
  };
}
