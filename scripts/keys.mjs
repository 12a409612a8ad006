// npm run keys -- <command>: creates, lists, rotates, disables and revokes API keys and tokens.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { exitCode } from './lib/command.mjs';
import { ROOT } from './lib/project.mjs';
import { STACK_ENV } from './lib/stack-env.mjs';

const program = join(ROOT, 'dist/apps/users/src/keys.js');
if (!existsSync(program)) {
  console.error('The project is not built yet: run npm start once, or npm run build.');
  process.exit(1);
}
const { USERS_DATABASE_URL, DATABASE_URL } = process.env;
if (!USERS_DATABASE_URL && !DATABASE_URL && existsSync(STACK_ENV)) process.loadEnvFile(STACK_ENV);

const code = await exitCode(spawn(process.execPath, [program, ...process.argv.slice(2)], { stdio: 'inherit' }));
if (code === 1 && !process.env.USERS_DATABASE_URL && !process.env.DATABASE_URL)
  console.error('Run npm start in another terminal, or set one of them.');
process.exit(typeof code === 'number' ? code : 1);
