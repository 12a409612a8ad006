// Brings the database and the broker to what this version expects; safe to repeat. Also the container's one-shot command.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { exitCode } from './lib/command.mjs';
import { ROOT } from './lib/project.mjs';

const STEPS = ['apps/users/src/migrate.js', 'apps/notifications/src/migrate.js', 'libs/rabbitmq/src/declare-topology.main.js'];

for (const step of STEPS) {
  const child = spawn(process.execPath, [join(ROOT, 'dist', step)], { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] });
  for (const name of ['SIGINT', 'SIGTERM']) process.once(name, () => child.kill(name));
  const code = await exitCode(child);
  if (code !== 0) {
    console.error(`Setup failed in dist/${step} (${code}).`);
    process.exit(typeof code === 'number' ? code : 1);
  }
}
