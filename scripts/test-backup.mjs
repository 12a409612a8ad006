// npm run test:backup: the recipes of docs/operations.md, each tried under load: backup and restore, new secrets, another broker, another database.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { commandLine } from './processes/command-line.mjs';
import { runSuite } from './checkout/suite.mjs';

commandLine(
  {
    command: 'npm run test:backup',
    about:
      'Tries the recipes of docs/operations.md under load: a backup and its restore elsewhere, new secrets, a move to another broker, and to another database.',
    examples: { '': 'everything, in two minutes' },
  },
  () => undefined,
);

/** @param {string} directory */
const figuresOf = (directory) => join(directory, 'figures.jsonl');
await runSuite({
  project: 'backup',
  env: (directory) => ({ BACKUP_REPORT: figuresOf(directory) }),
  after: (directory) => {
    const file = figuresOf(directory);
    if (existsSync(file)) process.stdout.write(`\n${readFileSync(file, 'utf8')}`);
  },
});
