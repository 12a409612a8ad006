const EVERY_MS = 5000;

/**
 * Says how far long work is, at most every 5 s.
 *
 * @param print takes a line for the operator
 */
export function soFar(print: (line: string) => void): (of: string, rows: number) => void {
  let saidAt = performance.now();
  return (of, rows) => {
    if (performance.now() - saidAt < EVERY_MS) return;
    saidAt = performance.now();
    print(`${of}: ${rows} so far`);
  };
}
