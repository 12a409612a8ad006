// npm run test:security: the security tests in full, on a broker and a database of their own.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { commandLine } from './processes/command-line.mjs';
import { endCommands } from './processes/command.mjs';
import { runJest } from './checkout/jest.mjs';
import { checkMachine } from './checkout/machine.mjs';
import { watchParent } from './processes/parent.mjs';
import { prepare } from './checkout/prepare.mjs';
import { report, reportFailure } from './checkout/progress.mjs';
import { temporaryDirectory } from './processes/temporary-directory.mjs';
import { TestServers } from './servers/test-servers.mjs';

const IN_FULL = { SECURITY_HTTP_CASES: '70000', SECURITY_QUEUE_CASES: '30000', SECURITY_ISOLATION_RUNS: '6' };

const chosen = commandLine(
  {
    command: 'npm run test:security --',
    about: 'Runs the security tests in full, on a broker and a database of their own. Arguments of Jest choose some of them.',
    passedOn: 'Jest',
    notes: [
      `${Object.keys(IN_FULL).join(', ')} say how much of it;\nSECURITY_SEED and SECURITY_PATH repeat one case, as a failure prints them.`,
    ],
    examples: { '': 'all of it', "-t 'over HTTP'": 'the tests with these words in their names' },
  },
  ({ words }) => words,
);
const directory = temporaryDirectory('security');
const reportFile = join(directory.path, 'report.jsonl');
const servers = new TestServers();
let leaving = false;

for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => void leave(130));
watchParent(() => void leave(1));

try {
  checkMachine();
  await prepare();
  const settings = { ...(await servers.startRabbit(report)), ...(await servers.startPostgres()) };
  const { passed, failed } = await runJest(
    // One file at a time: the systems under test would compete for the machine.
    ['--selectProjects', 'security', '--runInBand', ...chosen],
    { ...IN_FULL, ...amounts(), ...settings, SECURITY_REPORT: reportFile },
    join(directory.path, 'jest.json'),
  );
  for (const [name, value] of counts()) process.stdout.write(`${String(value).padStart(8)}  ${name}\n`);
  report(`${passed} passed, ${failed} failed`);
  await leave(failed > 0 ? 1 : 0);
} catch (error) {
  if (!leaving) reportFailure(error);
  await leave(1);
}

/** Amounts that the environment asks for instead. */
function amounts() {
  return Object.fromEntries(Object.keys(IN_FULL).flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
}

function counts() {
  try {
    return readFileSync(reportFile, 'utf8')
      .trim()
      .split('\n')
      .flatMap((line) => Object.entries(JSON.parse(line)));
  } catch {
    return []; // no test came so far
  }
}

/** @param {number} code */
async function leave(code) {
  if (leaving) return;
  leaving = true;
  endCommands();
  await servers.remove();
  directory.remove();
  process.exit(code);
}
