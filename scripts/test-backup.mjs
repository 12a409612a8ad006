// npm run test:backup: the recipes of docs/operations.md, each tried under load: backup and restore, new secrets, another broker, another database.
import { commandLine } from './processes/command-line.mjs';
import { runSuite } from './checkout/suite.mjs';

commandLine({
  command: 'npm run test:backup',
  about:
    'Tries the recipes of docs/operations.md under load: a backup and its restore elsewhere, new secrets, a move to another broker, and to another database.',
  examples: { '': 'everything, in two minutes' },
});

await runSuite({
  project: 'backup',
  after: (rows) => process.stdout.write(`\n${rows.map((row) => `${JSON.stringify(row)}\n`).join('')}`),
});
