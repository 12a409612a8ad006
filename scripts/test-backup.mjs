// npm run test:backup: whether a backup that was taken under load becomes a system again, and what is lost.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { commandLine } from './processes/command-line.mjs';
import { runSuite } from './checkout/suite.mjs';

commandLine(
  {
    command: 'npm run test:backup',
    about: 'Backs up a database under load, ends it as a power cut does, and restores it elsewhere, once to a chosen time.',
    examples: { '': 'everything, in a minute or two' },
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
