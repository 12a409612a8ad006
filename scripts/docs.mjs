// npm run docs:generate: what the documentation says twice is written from the code. With --check: fails when it differs, when the Layout
// of docs/code.md is not the tree, when a page names a page, a heading or a path that is not there, and when an entry of CHANGELOG.md is long.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { between } from './docs/between.mjs';
import { clientEvents, clientOperations } from './docs/client-types.mjs';
import { configurationTables, exampleEnvironment } from './docs/configuration.mjs';
import { DASHBOARDS } from './docs/dashboard-panels.mjs';
import { dashboardJson } from './docs/dashboards.mjs';
import { embedExamples } from './docs/examples.mjs';
import { httpOperations, ownErrorsTable } from './docs/http-operations.mjs';
import { layoutProblems } from './docs/layout.mjs';
import { deadLettersTable, eventsTable, operationsTable, optionalTable } from './docs/messages.mjs';
import { metricsTables } from './docs/metrics.mjs';
import { pageStatements } from './docs/page-statements.mjs';
import { supportedVersions } from './docs/supported-versions.mjs';
import { referenceProblems } from './docs/references.mjs';
import { accountsTable, topologyTables } from './docs/topology.mjs';
import { longEntries } from './release/changelog.mjs';
import { commandLine } from './processes/command-line.mjs';
import { orEnd, prepare } from './checkout/prepare.mjs';
import { ROOT } from './checkout/project.mjs';

const ASYNCAPI = 'dist/libs/api-docs/src/asyncapi/print.main.js';

/** @type {Map<string, string>} What each program printed: two files are made from one of them. */
const outputs = new Map();

/**
 * Each file, and what it should hold given what it holds.
 * @type {Record<string, (text: string) => string | Promise<string>>}
 */
const TARGETS = {
  'README.md': (text) => between('operations', between('configuration', text, configurationTables()), httpOperations()),
  'SECURITY.md': (text) => between('supported-versions', text, supportedVersions()),
  '.env.example': () => exampleEnvironment(),
  'openapi.json': () => printed('dist/libs/api-docs/src/openapi/print.main.js'),
  'libs/client/src/operations.ts': () => clientOperations(),
  'libs/client/src/event-data.ts': () => clientEvents(),
  'docs/page-statements.sql': () => pageStatements(),
  'docs/integrating.md': (text) => embedExamples(text),
  'docs/errors.md': (text) => between('own-errors', text, ownErrorsTable()),
  'docs/metrics.md': (text) => between('metrics', text, metricsTables()),
  ...Object.fromEntries(
    Object.keys(DASHBOARDS).map((name) => [`deploy/observability/dashboards/${name}.json`, () => dashboardJson(name)]),
  ),
  'asyncapi.json': () => printed(ASYNCAPI),
  'docs/messages.html': () => output('dist/libs/api-docs/src/asyncapi/print-page.main.js'),
  'docs/messages.md': (text) => {
    const document = JSON.parse(printed(ASYNCAPI));
    const tables = {
      operations: operationsTable(document),
      optional: optionalTable(document),
      'dead-letters': deadLettersTable(document),
      events: eventsTable(document),
      accounts: accountsTable(),
      topology: topologyTables(),
    };
    return Object.entries(tables).reduce((page, [name, content]) => between(name, page, content), text);
  },
};

const check = commandLine(
  {
    command: 'npm run docs:generate --',
    about: 'Writes what the documentation says twice from the code.',
    options: { check: { help: 'writes nothing, and fails when something differs: npm run docs:check' } },
    notes: [`Files: ${Object.keys(TARGETS).join(', ')}.`],
    examples: { '': 'after a change of a setting, a contract or an example', '--check': 'whether that was done' },
  },
  ({ values }) => values.check,
);
await orEnd(prepare);

const problems = [];
for (const [file, generate] of Object.entries(TARGETS)) {
  try {
    const path = join(ROOT, file);
    const current = existsSync(path) ? readFileSync(path, 'utf8') : '';
    const wanted = await generate(current);
    if (wanted === current) continue;
    if (check) problems.push(`${file} is not what the code says: run npm run docs:generate and commit it.`);
    else {
      writeFileSync(path, wanted);
      console.log(`${file} written`);
    }
  } catch (error) {
    problems.push(`${file} cannot be generated: ${error.message}`);
  }
}
if (check)
  problems.push(...layoutProblems(), ...referenceProblems(), ...longEntries(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8')));
if (problems.length > 0) {
  console.error(problems.join('\n'));
  process.exitCode = 1;
}

/**
 * The JSON document that a program prints.
 * @param {string} program
 */
function printed(program) {
  return `${JSON.stringify(JSON.parse(output(program)), null, 2)}\n`;
}

/** @param {string} program */
function output(program) {
  if (!existsSync(join(ROOT, program))) throw new Error(`${program} is missing.`);
  const printed =
    outputs.get(program) ??
    execFileSync(process.execPath, [program], { cwd: ROOT, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
  outputs.set(program, printed);
  return printed;
}
