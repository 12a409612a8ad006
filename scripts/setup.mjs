// Brings the database and the broker to what this version expects; safe to repeat. Also the container's one-shot command.
import './processes/stop-at-once.mjs';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { commandLine } from './processes/command-line.mjs';
import { exitCode } from './processes/command.mjs';
import { ROOT } from './checkout/project.mjs';

const STEPS = {
  users: 'apps/users/src/tools/migrate.main.js',
  notifications: 'apps/notifications/src/tools/migrate.main.js',
  accounts: 'libs/rabbitmq-admin/src/accounts/declare-accounts.main.js',
  topology: 'libs/rabbitmq/src/topology/declare-topology.main.js',
};

const { wanted, options } = commandLine(
  {
    command: 'npm run setup --',
    about: 'Brings the database and the broker to what this version expects. Safe to repeat.',
    words: { name: 'STEP', help: 'only these; without one, all, in this order:', known: Object.keys(STEPS) },
    options: { upgraded: { help: 'no process of a version without lanes runs any more: removes what only those needed' } },
    notes: [
      'The servers are those of AMQP_URL, RABBITMQ_MANAGEMENT_URL and DATABASE_URL. In a container: node scripts/setup.mjs',
    ],
    examples: { '': 'everything', 'users notifications': 'the schemas of the database', '--upgraded': 'the end of an upgrade' },
  },
  ({ words, values }) => ({
    wanted: words,
    options: /** @type {Record<string, string[]>} */ ({ topology: values.upgraded ? ['--upgraded'] : [] }),
  }),
);

/** @type {import('node:child_process').ChildProcess | undefined} */
let step;
process.on('exit', () => step?.kill());

for (const [name, program] of Object.entries(STEPS)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const command = [join(ROOT, 'dist', program), ...(options[name] ?? [])];
  step = spawn(process.execPath, command, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] });
  const code = await exitCode(step);
  if (code !== 0) {
    console.error(`Setup failed in dist/${program} (${code}).`);
    process.exit(typeof code === 'number' ? code : 1);
  }
}
