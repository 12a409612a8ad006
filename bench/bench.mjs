// npm run bench: how fast this is, beside what people build otherwise, on servers of its own. Prints a table, and writes
// docs/benchmarks.md and its plots when everything was measured, into the part of the version of Node that runs it.
import { UsageError, commandLine, secondsOf } from '../scripts/processes/command-line.mjs';
import { endCommands } from '../scripts/processes/command.mjs';
import { checkMachine } from '../scripts/checkout/machine.mjs';
import { watchParent } from '../scripts/processes/parent.mjs';
import { prepare } from '../scripts/checkout/prepare.mjs';
import { report, reportFailure, stage } from '../scripts/checkout/progress.mjs';
import { buildBenchmark } from './lib/build.mjs';
import { Laboratory } from './lib/laboratory.mjs';
import { isFailure } from './lib/load.mjs';
import { MODES } from './lib/modes.mjs';
import { watchStolen } from './lib/proc.mjs';
import { document, othersHad, printed, writeDocument } from './lib/report.mjs';
import * as add from './rows/add.mjs';
import * as alone from './rows/alone.mjs';
import * as bytes from './rows/bytes.mjs';
import * as connections from './rows/connections.mjs';
import * as gateways from './rows/gateways.mjs';
import * as get from './rows/get.mjs';
import * as idle from './rows/idle.mjs';
import * as inbox from './rows/inbox.mjs';
import * as latency from './rows/latency.mjs';
import * as lifecycle from './rows/lifecycle.mjs';
import * as members from './rows/members.mjs';
import * as outbox from './rows/outbox.mjs';
import * as pages from './rows/pages.mjs';
import * as publish from './rows/publish.mjs';
import * as recipients from './rows/recipients.mjs';
import * as soak from './rows/soak.mjs';
import * as tracing from './rows/tracing.mjs';
import * as users from './rows/users.mjs';
import * as writers from './rows/writers.mjs';

/**
 * In this order: what fills tables by the million comes late.
 * @type {Record<string, { title: string, run: (laboratory: Laboratory, mode: import('./lib/modes.mjs').Mode) => Promise<import('./lib/findings.mjs').Findings> }>}
 */
const ROWS = {
  add,
  alone,
  recipients,
  users,
  get,
  publish,
  writers,
  connections,
  gateways,
  latency,
  outbox,
  tracing,
  lifecycle,
  members,
  bytes,
  idle,
  soak,
  pages,
  inbox,
};

const { names, modeName, mode, write } = commandLine(
  {
    command: 'npm run bench --',
    about:
      'Measures how fast this is, beside what people build otherwise, on servers of its own. Prints a table, and writes docs/benchmarks.md\nand its plots when everything was measured.',
    words: { name: 'ROW', help: 'only these; without one, all:', known: Object.keys(ROWS) },
    options: {
      quick: { help: 'in two minutes, to see whether it runs: the figures are nothing to quote' },
      full: { help: 'with 10 million stored notifications and ten minutes of load' },
      write: { help: 'write the page with only these rows' },
      soak: { value: 'TIME', help: 'how long the load of the row soak lasts: a number with s, m or h' },
    },
    examples: { '': 'everything', 'add pages': 'two rows', 'soak --soak 5m': 'five minutes of load' },
  },
  ({ words, values }) => {
    if (values.quick && values.full) throw new UsageError('--quick and --full exclude each other.');
    if (values.quick && values.write) throw new UsageError('--quick has no figures to write.');
    const named = values.quick ? 'quick' : values.full ? 'full' : 'default';
    return {
      names: words.length > 0 ? words : Object.keys(ROWS),
      modeName: named,
      write: !values.quick && (words.length === 0 || Boolean(values.write)),
      mode: { ...MODES[named], ...(values.soak && { soakSeconds: secondsOf('--soak', values.soak) }) },
    };
  },
);

/** @type {Laboratory | undefined} */
let laboratory;
let leaving = false;

for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => void leave(130));
watchParent(() => void leave(1));

try {
  checkMachine();
  const opened = new Laboratory(mode);
  laboratory = opened;
  await prepare();
  await buildBenchmark();
  await stage('starting RabbitMQ and PostgreSQL', () => opened.open());
  /** @type {import('./lib/report.mjs').Result[]} */
  const results = [];
  for (const name of names) results.push(await runRow(opened, name));
  process.stdout.write(`\n${printed(results)}\n`);
  const failed = results.filter(({ failure }) => failure);
  if (write) {
    if (failed.length > 0) report('docs/benchmarks.md stays as it is: not everything could be measured');
    else writeDocument(results, await document(results, howOf(), opened));
  }
  await leave(failed.length > 0 ? 1 : 0);
} catch (error) {
  if (!leaving) reportFailure(error);
  await leave(1);
}

/**
 * A row that fails has no figures, and does not keep the others from theirs.
 * @param {Laboratory} opened
 * @param {string} name
 * @returns {Promise<import('./lib/report.mjs').Result>}
 */
async function runRow(opened, name) {
  const row = ROWS[name];
  report(`${name}: ${row.title}`);
  const stolen = watchStolen();
  try {
    const findings = await row.run(opened, mode);
    const share = stolen();
    if (share !== undefined) report(`    ${othersHad([share])}`);
    return { name, title: row.title, ...findings, stolen: share };
  } catch (error) {
    if (leaving || !isFailure(error)) throw error;
    const cause = error.cause instanceof Error ? ` (${error.cause.message})` : '';
    report(`    FAILED: ${error.message}${cause}`);
    await opened.discardSystems();
    return { name, title: row.title, failure: error.message };
  }
}

/** The command of this run. */
function howOf() {
  const words = [...(modeName === 'default' ? [] : [`--${modeName}`]), ...(names.length < Object.keys(ROWS).length ? names : [])];
  return ['npm run bench', ...(words.length > 0 ? ['--', ...words] : [])].join(' ');
}

/** @param {number} code */
async function leave(code) {
  if (leaving) return;
  leaving = true;
  endCommands();
  await laboratory?.close();
  process.exit(code);
}
