// Brings the database and the broker to what this version expects; safe to repeat. Also the container's one-shot command.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { exitCode } from './processes/command.mjs';
import { ROOT } from './checkout/project.mjs';

const STEPS = {
  users: 'apps/users/src/tools/migrate.main.js',
  notifications: 'apps/notifications/src/tools/migrate.main.js',
  accounts: 'libs/rabbitmq-admin/src/accounts/declare-accounts.main.js',
  topology: 'libs/rabbitmq/src/topology/declare-topology.main.js',
};

// Arguments name the steps to run; without any, all of them. --upgraded: no process of a version without lanes runs any more.
const UPGRADED = '--upgraded';
const wanted = process.argv.slice(2).filter((argument) => argument !== UPGRADED);
const options = { topology: process.argv.includes(UPGRADED) ? [UPGRADED] : [] };
const unknown = wanted.filter((name) => !Object.hasOwn(STEPS, name));
if (unknown.length > 0) {
  console.error(`Unknown step ${unknown.join(', ')}; there are: ${Object.keys(STEPS).join(', ')}; and the option ${UPGRADED}.`);
  process.exit(2);
}

for (const [name, program] of Object.entries(STEPS)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const command = [join(ROOT, 'dist', program), ...(options[name] ?? [])];
  const child = spawn(process.execPath, command, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] });
  const pass = (signalName) => child.kill(signalName);
  for (const signalName of ['SIGINT', 'SIGTERM']) process.once(signalName, pass);
  const code = await exitCode(child);
  for (const signalName of ['SIGINT', 'SIGTERM']) process.off(signalName, pass);
  if (code !== 0) {
    console.error(`Setup failed in dist/${program} (${code}).`);
    process.exit(typeof code === 'number' ? code : 1);
  }
}
