import { appendFileSync } from 'node:fs';

/** Appends a row to the table that a command of scripts/ prints after its tests. */
export function report(row: object): void {
  const { TEST_REPORT } = process.env;
  if (TEST_REPORT) appendFileSync(TEST_REPORT, `${JSON.stringify(row)}\n`);
}
