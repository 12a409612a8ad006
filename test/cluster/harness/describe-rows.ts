import type { Row } from './bounds';
import { ClusterSystem, type ClusterSystemOptions } from './cluster-system';
import { runRow } from './run-row';

const LONGEST_START_MS = 240_000;
const LONGEST_ROW_MS = 900_000;

/**
 * Starts one system, and runs each row as a test on it. A broken promise fails the test.
 *
 * @param strict whether a bound on time that was missed fails the test, too; otherwise it is reported only
 */
export function describeRows(title: string, rows: readonly Row[], strict: boolean, options: ClusterSystemOptions = {}): void {
  describe(title, () => {
    let system: ClusterSystem | undefined;

    beforeAll(async () => {
      system = await ClusterSystem.start(options);
    }, LONGEST_START_MS);
    afterAll(() => system?.remove(), 60_000);

    it.each(rows.map((row) => [row.name, row] as const))(
      '%s',
      async (_name, row) => {
        system ??= await ClusterSystem.start(options);
        const { violations, missed } = await runRow(system, row);
        if (violations.length > 0) {
          // The next row must not suffer from this one.
          await system.remove();
          system = undefined;
        }
        expect([...violations, ...(strict ? missed : [])]).toEqual([]);
      },
      LONGEST_ROW_MS,
    );
  });
}
