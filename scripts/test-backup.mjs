// npm run test:backup: whether a backup that was taken under load becomes a system again, and what is lost.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { commandLine } from './processes/command-line.mjs';
import { endCommands } from './processes/command.mjs';
import { runJest } from './checkout/jest.mjs';
import { checkMachine } from './checkout/machine.mjs';
import { watchParent } from './processes/parent.mjs';
import { prepare } from './checkout/prepare.mjs';
import { report, reportFailure } from './checkout/progress.mjs';
import { temporaryDirectory } from './processes/temporary-directory.mjs';

commandLine(
  {
    command: 'npm run test:backup',
    about: 'Backs up a database under load, ends it as a power cut does, and restores it elsewhere, once to a chosen time.',
    examples: { '': 'everything, in a minute or two' },
  },
  () => undefined,
);
const directory = temporaryDirectory('backup');
const figuresFile = join(directory.path, 'figures.jsonl');
let leaving = false;

for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => leave(130));
watchParent(() => leave(1));

try {
  checkMachine();
  await prepare();
  const { passed, failed } = await runJest(
    ['--selectProjects', 'backup', '--runInBand'],
    { BACKUP_REPORT: figuresFile },
    join(directory.path, 'report.json'),
  );
  if (existsSync(figuresFile)) process.stdout.write(`\n${readFileSync(figuresFile, 'utf8')}`);
  report(`${passed} passed, ${failed} failed`);
  leave(failed > 0 ? 1 : 0);
} catch (error) {
  if (!leaving) reportFailure(error);
  leave(1);
}

/** @param {number} code */
function leave(code) {
  if (leaving) return;
  leaving = true;
  endCommands();
  directory.remove();
  process.exit(code);
}
