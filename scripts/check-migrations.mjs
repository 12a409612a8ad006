// Part of `npm run lint`: a migration must leave the previous version working while both run. squawk reads the SQL that `up` sends.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { built } from './checkout/project.mjs';
import { orEnd, prepare } from './checkout/prepare.mjs';
import { commandLine } from './processes/command-line.mjs';

const APPS = ['users', 'notifications', 'operator'];
/** Timestamp of the newest migration that is accepted as it is. A release sets it to its newest migration. */
const ACCEPTED = 1795824000000;

const NOT_OURS = [
  'prefer-robust-stmts', // a migration runs once, in a transaction
  'require-timeout-settings', // set-up decides how long it waits
];

/** @typedef {{ name: string, transaction?: boolean, up(runner: object): Promise<void> }} Migration */

const require = createRequire(import.meta.url);

const all = commandLine(
  {
    command: 'node scripts/check-migrations.mjs',
    about: 'Checks that new migrations leave the previous version working.',
    options: { all: { help: 'also the migrations of released versions' } },
    examples: { '': 'the migrations since the last release', '--all': 'all' },
  },
  ({ values }) => values.all,
);
await orEnd(prepare);

const directory = mkdtempSync(join(tmpdir(), 'migrations-'));
try {
  /** @type {{ file: string, inTransaction: boolean }[]} */
  const files = [];
  for (const app of APPS) {
    for (const migration of migrationsOf(app)) {
      if (!all && Number(/\d+$/.exec(migration.name)?.[0]) <= ACCEPTED) continue;
      const file = `${app}-${migration.name}.sql`;
      writeFileSync(join(directory, file), await sqlOf(migration));
      files.push({ file, inTransaction: migration.transaction !== false });
    }
  }
  for (const inTransaction of [true, false]) {
    const chosen = files.filter((one) => one.inTransaction === inTransaction).map(({ file }) => file);
    if (chosen.length > 0 && !passes(chosen, inTransaction)) process.exitCode = 1;
  }
} finally {
  rmSync(directory, { recursive: true });
}

/**
 * @param {string} app
 * @returns {Migration[]}
 */
function migrationsOf(app) {
  const { DATABASE } = built(`apps/${app}/src/db/schema.js`);
  return DATABASE.migrations.map((/** @type {new () => Migration} */ Class) => new Class());
}

/**
 * @param {Migration} migration
 * @returns {Promise<string>} the statements of `up`
 */
async function sqlOf({ name, up }) {
  /** @type {string[]} */
  const statements = [];
  const runner = {
    /** @param {string} statement */
    query: async (statement) => {
      statements.push(`${statement.trim().replace(/;$/, '')};\n`);
      return [];
    },
  };
  const query = new Proxy(runner, {
    get(target, property) {
      if (property === 'query') return target.query;
      throw new Error(`${name} uses ${String(property)} of the query runner: only query() can be checked.`);
    },
  });
  await up(query);
  return statements.join('\n');
}

/** @param {string[]} files @param {boolean} inTransaction */
function passes(files, inTransaction) {
  const options = [`--exclude=${NOT_OURS.join(',')}`, '--pg-version=15.0', ...(inTransaction ? ['--assume-in-transaction'] : [])];
  const { status, error, stdout, stderr } = spawnSync(require('squawk-cli/js/index.js').getBinaryPath(), [...options, ...files], {
    cwd: directory,
    encoding: 'utf8',
  });
  if (error) throw error;
  // It also says that there is nothing to say.
  if (status !== 0) process.stderr.write(`${stdout}${stderr}`);
  return status === 0;
}
