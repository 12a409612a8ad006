import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { exitCode } from '../processes/command.mjs';
import { ROOT } from '../checkout/project.mjs';
import { STACK_ENV } from './stack-env.mjs';

/**
 * Runs a built command line tool on a database: that of the environment, else that of a running npm start.
 * @param {string} program below the project
 * @param {string[]} parameters
 * @param {string} databaseVariable counts before DATABASE_URL
 * @returns {Promise<number>} the exit code
 */
export async function runTool(program, parameters, databaseVariable) {
  const path = join(ROOT, program);
  if (!existsSync(path)) {
    console.error('The project is not built yet: run npm start once, or npm run build.');
    return 1;
  }
  const named = () => process.env[databaseVariable] || process.env.DATABASE_URL;
  if (!named() && existsSync(STACK_ENV)) process.loadEnvFile(STACK_ENV);
  const code = await exitCode(spawn(process.execPath, [path, ...parameters], { stdio: 'inherit' }));
  if (code === 1 && !named()) console.error('Run npm start in another terminal, or set one of them.');
  return typeof code === 'number' ? code : 1;
}
