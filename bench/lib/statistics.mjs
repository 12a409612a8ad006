/** @param {number[]} values @returns {number} */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** @typedef {import('./load.mjs').Run} Run */
/** @typedef {Pick<Run, 'perSecond' | 'p50' | 'p99' | 'settled' | 'cpu'> & { runs: Run[] }} Summary */

/**
 * The median of every figure of several runs of the same load.
 * @param {Run[]} runs
 * @returns {Summary}
 */
export function summaryOf(runs) {
  /** @param {(run: Run) => number} pick */
  const of = (pick) => median(runs.map(pick));
  const processes = Object.keys(runs[0].cpu);
  return {
    perSecond: of(({ perSecond }) => perSecond),
    p50: of(({ p50 }) => p50),
    p99: of(({ p99 }) => p99),
    settled: of(({ settled }) => settled),
    cpu: Object.fromEntries(processes.map((name) => [name, of(({ cpu }) => cpu[name])])),
    runs,
  };
}

/**
 * Lowest and highest value of several runs, as text.
 * @template T
 * @param {T[]} runs
 * @param {(run: T, index: number) => number} pick
 * @param {(value: number) => string} [show]
 */
export function spread(runs, pick, show = whole) {
  const values = runs.map(pick);
  return `${show(Math.min(...values))}–${show(Math.max(...values))}`;
}

/** @param {number} value */
export const whole = (value) => Math.round(value).toLocaleString('en-US');
/** @param {number} value */
export const two = (value) => value.toFixed(2);
