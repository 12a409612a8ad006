import { appendFileSync } from 'node:fs';

/** A line for the figures of npm run test:backup. */
export function report(figures: object): void {
  const { BACKUP_REPORT: file } = process.env;
  if (file) appendFileSync(file, `${JSON.stringify(figures)}\n`);
}
