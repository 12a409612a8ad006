// npm run accounts -- <command>: creates, changes, lists and deletes the broker accounts of other services.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ROOT } from './checkout/project.mjs';
import { STACK_ENV } from './stack/stack-env.mjs';

const program = join(ROOT, 'dist/libs/rabbitmq-admin/src/accounts/accounts.main.js');
if (!existsSync(program)) {
  console.error('The project is not built yet: run npm start once, or npm run build.');
  process.exit(1);
}
if (!process.env.AMQP_URL && existsSync(STACK_ENV)) process.loadEnvFile(STACK_ENV);

createRequire(import.meta.url)(program);
